//! What both sides of HTTP/2 share: incoming bodies, and waiting for the window of outgoing ones.

use std::mem;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use h2::RecvStream;
use h2::SendStream;
use http_body::Frame;
use http_body::SizeHint;

/// The rest of an incoming body.
#[derive(Debug)]
pub struct Body {
    stream: RecvStream,
    /// The bytes that are left, where the length was stated. h2 enforces it.
    left: Option<u64>,
    /// In bytes: the last part. Its window is released when the next part is polled.
    given: usize,
}

impl Body {
    pub fn new(stream: RecvStream, length: Option<u64>) -> Self {
        Self { stream, left: length, given: 0 }
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        self.release_window();
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let data = data?;
            self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
            self.given = data.len();
            if self.is_complete() {
                // The caller need not poll again.
                self.release_window();
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        Poll::Ready(ready!(self.stream.poll_trailers(cx)).transpose().map(|trailers| trailers.map(Frame::trailers)))
    }

    fn release_window(&mut self) {
        // A failure shows in the next poll.
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
        // The stream may live on until its response is complete.
        self.release_window();
    }
}

/// Ready when the window has room for a part of the data, or never will.
pub fn poll_room(stream: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<()> {
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(0)) => {}
            Some(_) | None => break,
        }
    }
    Poll::Ready(())
}
