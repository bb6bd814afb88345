//! Bodies of requests that may be needed a second time: a server that speaks HTTP/2 can refuse what it has not looked at.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use parking_lot::Mutex;

/// A body that can begin again, within reason.
pub trait Again {
    /// What is given from here on is kept.
    fn keep(&mut self);

    /// Is what it was when it was told to keep. `false`: it gave more than it keeps.
    fn begin_again(&mut self) -> bool;

    /// It will not be asked to begin again.
    fn forget(&mut self);
}

/// A body that somebody else reads, and that can be had back. Both are on one core; the lock is for the compiler.
#[derive(Debug)]
pub(super) struct Lent<B>(Arc<Mutex<Option<B>>>);

impl<B: Again> Lent<B> {
    pub(super) fn new(mut body: B) -> Self {
        body.keep();
        Self(Arc::new(Mutex::new(Some(body))))
    }

    /// For the one who reads it.
    pub(super) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Leaves it to its reader for good.
    pub(super) fn give_up(self) {
        if let Some(body) = &mut *self.0.lock() {
            body.forget();
        }
    }

    /// From its beginning; its reader has nothing left to read. `None`: too much of it was read.
    pub(super) fn take_back(self) -> Option<B> {
        let mut body = self.0.lock().take()?;
        body.begin_again().then_some(body)
    }
}

/// What was taken back has neither a next part nor an end.
impl<B: Body<Data = Bytes> + Unpin> Body for Lent<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut *self.0.lock() {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().as_ref().is_some_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().as_ref().map(Body::size_hint).unwrap_or_default()
    }
}
