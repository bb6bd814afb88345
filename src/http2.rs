//! What both ends of HTTP/2 have in common: a body as it comes in over a stream, and room for one that goes out.

use std::mem;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use h2::RecvStream;
use h2::SendStream;
use http_body::Frame;
use http_body::SizeHint;

/// What of a body was not given out yet.
#[derive(Debug)]
pub struct Body {
    stream: RecvStream,
    /// What is left, where the length was stated. h2 holds the other side to it.
    left: Option<u64>,
    /// What was given out last: it makes room for more once more is asked for.
    given: usize,
}

impl Body {
    pub fn new(stream: RecvStream, length: Option<u64>) -> Self {
        Self { stream, left: length, given: 0 }
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        self.make_room();
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let data = data?;
            self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
            self.given = data.len();
            if self.is_complete() {
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

    pub fn is_complete(&self) -> bool {
        self.stream.is_end_stream()
    }

    pub fn size_hint(&self) -> SizeHint {
        match self.left {
            _ if self.is_complete() => SizeHint::with_exact(0),
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

/// Ready when there is room for some of a part, or never will be.
pub fn poll_room(stream: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<()> {
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(0)) => {}
            Some(_) | None => break,
        }
    }
    Poll::Ready(())
}
