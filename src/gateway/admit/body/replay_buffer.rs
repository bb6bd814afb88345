//! A body that begins again: what was given on of it is kept, up to a bound.

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;

use super::RequestBody;
use crate::coalesce::BodyBuffer;
use crate::upstream::ReplayBody;

/// What was given on of a body since it was told to keep it.
#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    parts: BodyBuffer,
    /// So many bytes more are kept; `None`: nothing is.
    room: Option<usize>,
}

impl ReplayBuffer {
    pub(super) fn note(&mut self, frame: &Frame<Bytes>) {
        let Some(room) = self.room else { return };
        match frame.data_ref().and_then(|data| Some((data, room.checked_sub(data.len())?))) {
            Some((data, left)) => {
                self.parts.put(data.clone());
                self.room = Some(left);
            }
            // Trailers, or too much.
            None => *self = Self::default(),
        }
    }
}

impl<B: Body> ReplayBody for RequestBody<B> {
    /// A body that is here whole is kept whole; of another one only the start.
    fn keep(&mut self) {
        let Some(body) = &mut self.0 else { return };
        let is_here = body.has_ended || body.source.is_end_stream();
        body.given =
            ReplayBuffer { parts: BodyBuffer::expecting(KEPT), room: Some(if is_here { usize::MAX } else { KEPT }) };
    }

    fn replay(&mut self) -> bool {
        let Some(body) = &mut self.0 else { return true };
        let ReplayBuffer { parts, room } = std::mem::take(&mut body.given);
        // What was read ahead is given on first, and at once: none of it is left when there is something else.
        if !parts.is_empty() {
            body.replay = parts.into_bytes();
        }
        room.is_some()
    }

    fn stop_keeping(&mut self) {
        if let Some(body) = &mut self.0 {
            body.given = ReplayBuffer::default();
        }
    }
}

/// A form is shorter.
const KEPT: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt;
    use http_body_util::Full;

    use super::*;
    use crate::gateway::admit::body::BodyBounds;
    use crate::listen::Budget;

    fn body(length: usize) -> RequestBody<Full<Bytes>> {
        let bounds = BodyBounds { length: None, idle: Duration::from_secs(30), rate: 0 };
        RequestBody::new(Full::from(vec![b'x'; length]), bounds)
    }

    async fn rest(body: &mut RequestBody<Full<Bytes>>) -> usize {
        body.collect().await.unwrap().to_bytes().len()
    }

    #[tokio::test]
    async fn a_short_body_begins_again_with_its_first_byte() {
        let mut body = body(KEPT);
        for _ in 0..3 {
            body.keep();
            assert_eq!(body.size_hint().exact(), Some(KEPT as u64));
            assert_eq!(rest(&mut body).await, KEPT);
            assert!(body.is_end_stream());
            assert!(body.replay());
        }
    }

    #[tokio::test]
    async fn of_a_long_one_only_what_is_here_whole_begins_again() {
        let mut streamed = body(KEPT + 1);
        streamed.keep();
        assert_eq!(rest(&mut streamed).await, KEPT + 1);
        assert!(!streamed.replay());

        let mut peeked = body(KEPT + 1);
        assert!(peeked.peek(2 * KEPT, &Budget::default()).await.unwrap().is_whole);
        peeked.keep();
        assert_eq!(rest(&mut peeked).await, KEPT + 1);
        assert!(peeked.replay());
        assert_eq!(rest(&mut peeked).await, KEPT + 1);
    }

    #[tokio::test]
    async fn what_will_not_be_needed_is_not_kept() {
        let mut body = body(10);
        body.keep();
        body.stop_keeping();
        assert_eq!(rest(&mut body).await, 10);
        assert!(!body.replay());
    }
}
