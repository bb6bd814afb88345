//! A body that joins its small parts.

use std::error::Error;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;

use super::BodyBuffer;

/// A body whose small parts are joined if they are available already. It never waits for a part.
///
/// For HTTP/2, where each part becomes a frame that costs some hundred bytes until it is written.
#[derive(Debug)]
pub struct CoalescingBody<B> {
    body: B,
    /// What was polled behind the last part.
    next: Next,
}

#[derive(Debug)]
enum Next {
    /// Not polled yet.
    Unknown,
    Known(Result<Frame<Bytes>, Fault>),
    End,
}

/// Why a body broke off.
type Fault = Box<dyn Error + Send + Sync>;

impl<B> CoalescingBody<B> {
    pub fn new(body: B) -> Self {
        Self { body, next: Next::Unknown }
    }

    pub fn get_mut(&mut self) -> &mut B {
        &mut self.body
    }

    pub fn into_inner(self) -> B {
        self.body
    }
}

impl<B> CoalescingBody<B>
where
    B: Body<Data = Bytes, Error: Into<Fault>> + Unpin,
{
    /// Adds the parts that are available already.
    fn coalesce(&mut self, first: Bytes, cx: &mut Context<'_>) -> Bytes {
        let mut parts = BodyBuffer::expecting(MAX_JOINED);
        parts.put(first);
        while parts.len() < MAX_JOINED && !self.body.is_end_stream() {
            let Poll::Ready(next) = Pin::new(&mut self.body).poll_frame(cx) else { break };
            self.next = match next.map(|next| next.map(Frame::into_data)) {
                Some(Ok(Ok(data))) if data.len() < SMALL => {
                    parts.put(data);
                    continue;
                }
                Some(Ok(Ok(data))) => Next::Known(Ok(Frame::data(data))),
                Some(Ok(Err(frame))) => Next::Known(Ok(frame)),
                Some(Err(fault)) => Next::Known(Err(fault.into())),
                None => Next::End,
            };
            break;
        }
        parts.into_bytes()
    }
}

impl<B> Body for CoalescingBody<B>
where
    B: Body<Data = Bytes, Error: Into<Fault>> + Unpin,
{
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        match std::mem::replace(&mut self.next, Next::Unknown) {
            Next::Unknown => {}
            Next::Known(next) => return Poll::Ready(Some(next)),
            Next::End => {
                self.next = Next::End;
                return Poll::Ready(None);
            }
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match frame.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(data))) if data.len() < SMALL => Some(Ok(Frame::data(self.coalesce(data, cx)))),
            Some(Ok(Ok(data))) => Some(Ok(Frame::data(data))),
            Some(Ok(Err(frame))) => Some(Ok(frame)),
            Some(Err(fault)) => Some(Err(fault.into())),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        match self.next {
            Next::Unknown => self.body.is_end_stream(),
            Next::Known(_) => false,
            Next::End => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.next {
            Next::Unknown => self.body.size_hint(),
            Next::End => SizeHint::with_exact(0),
            Next::Known(next) => {
                let rest = self.body.size_hint();
                let held = next.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len) as u64;
                let mut hint = SizeHint::new();
                hint.set_lower(rest.lower() + held);
                if let Some(most) = rest.upper() {
                    hint.set_upper(most.saturating_add(held));
                }
                hint
            }
        }
    }
}

/// In bytes: a larger part is worth a frame of its own.
const SMALL: usize = 1024;

/// In bytes: as much as one frame holds.
const MAX_JOINED: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use http::HeaderMap;

    use super::*;

    /// What a body gives next: a part of this length, nothing yet, trailers, an error.
    #[derive(Clone, Copy)]
    enum Step {
        Part(usize),
        Silence,
        Trailers,
        Fault,
    }
    use Step::Fault;
    use Step::Part;
    use Step::Silence;
    use Step::Trailers;

    struct Script(VecDeque<Step>);

    impl Body for Script {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            Poll::Ready(match self.0.pop_front() {
                Some(Part(length)) => Some(Ok(Frame::data(vec![b'x'; length].into()))),
                Some(Trailers) => Some(Ok(Frame::trailers(HeaderMap::new()))),
                Some(Fault) => Some(Err("fault")),
                Some(Silence) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                None => None,
            })
        }
    }

    /// Compares the lengths of the joined parts, and what ends them.
    async fn check(steps: &[Step], expected: &[usize], end: &str) {
        let mut body = CoalescingBody::new(Script(steps.iter().copied().collect()));
        let mut lengths = Vec::new();
        let ended: String = loop {
            match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                Some(Ok(frame)) => match frame.data_ref() {
                    Some(data) => lengths.push(data.len()),
                    None => break "trailers".to_owned(),
                },
                Some(Err(fault)) => break fault.to_string(),
                None => break "end".to_owned(),
            }
        };
        assert_eq!((&lengths[..], &ended[..]), (expected, end));
    }

    #[tokio::test]
    async fn small_parts_that_are_available_are_joined() {
        check(&[Part(1); 100], &[100], "end").await;
        check(&[Part(1), Part(2), Silence, Part(3), Trailers], &[3, 3], "trailers").await;
        check(&[Part(1), Part(2), Fault], &[3], "fault").await;
        check(&[Part(1), Part(2000), Part(1), Part(1)], &[1, 2000, 2], "end").await;
        check(&[Part(1000); 20], &[17_000, 3000], "end").await;
        check(&[], &[], "end").await;
    }
}
