//! The body of a request: what h2 has of it, for whoever asks.

use std::mem;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use h2::RecvStream;
use http_body::Frame;
use http_body::SizeHint;

/// What of a body was not given out yet.
#[derive(Debug)]
pub(in crate::listen) struct Body {
    stream: RecvStream,
    /// What is left, where the length was stated. h2 holds the client to it.
    left: Option<u64>,
    /// What was given out last: it makes room for more once more is asked for.
    given: usize,
}

impl Body {
    pub(super) fn new(stream: RecvStream, length: Option<u64>) -> Self {
        Self { stream, left: length, given: 0 }
    }

    pub(in crate::listen) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        self.make_room();
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let data = data?;
            self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
            self.given = data.len();
            if self.is_through() {
                // Nobody has to ask again.
                self.make_room();
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        Poll::Ready(ready!(self.stream.poll_trailers(cx)).transpose().map(|trailers| trailers.map(Frame::trailers)))
    }

    fn make_room(&mut self) {
        // That the stream is gone shows when asked for more.
        let _ = self.stream.flow_control().release_capacity(mem::take(&mut self.given));
    }

    pub(in crate::listen) fn is_through(&self) -> bool {
        self.stream.is_end_stream()
    }

    pub(in crate::listen) fn size_hint(&self) -> SizeHint {
        match self.left {
            _ if self.is_through() => SizeHint::with_exact(0),
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::new(),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // The stream may be there for as long as its answer is.
        self.make_room();
    }
}
