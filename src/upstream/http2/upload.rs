//! A request's body as hyper sees it. What passes through is noted, so that waiting for the server can be told from
//! waiting for the client.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::time::Instant;
use tokio_util::either::Either;

use crate::gather::Gathering;
use crate::upstream::again::Again;
use crate::upstream::again::Lent;
use crate::upstream::error::BoxError;

/// What happened to one request since it was handed over.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    /// When the request, or a part of its body, last went out: microseconds since it began.
    moved: AtomicU64,
    /// Part of the request's body is still to be sent.
    uploading: AtomicBool,
    /// The server takes no more.
    blocked: AtomicBool,
    /// The request's body failed.
    broke_off: AtomicBool,
}

impl Progress {
    pub(super) fn new(uploading: bool) -> Self {
        Self {
            began: Instant::now(),
            moved: AtomicU64::new(0),
            uploading: AtomicBool::new(uploading),
            blocked: AtomicBool::new(false),
            broke_off: AtomicBool::new(false),
        }
    }

    /// Whether the body failed.
    pub(super) fn broke_off(&self) -> bool {
        self.broke_off.load(Ordering::Relaxed)
    }

    /// Since when it is the server's turn; `None`: it is the client's.
    pub(super) fn server_is_due_since(&self) -> Option<Instant> {
        if self.uploading.load(Ordering::Relaxed) && !self.blocked.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.began + Duration::from_micros(self.moved.load(Ordering::Relaxed)))
    }

    fn note_move(&self) {
        let micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.moved.store(micros, Ordering::Relaxed);
    }

    /// The next part of a body was asked for: the server takes what there is, and `part` tells whose turn it is.
    fn note_part<T, E>(&self, part: &Poll<Option<Result<T, E>>>) {
        self.blocked.store(part.is_ready(), Ordering::Relaxed);
        if part.is_ready() {
            self.note_move();
        }
        if matches!(part, Poll::Ready(Some(Err(_)))) {
            self.broke_off.store(true, Ordering::Relaxed);
        }
    }
}

/// The body of a request on its way to a server.
#[derive(Debug)]
pub(super) struct Upload<B> {
    body: Either<B, Gathering<Lent<B>>>,
    end: End,
}

impl<B> Upload<B> {
    /// A body that is not empty, and that the server may refuse unread.
    pub(super) fn lent(body: Lent<B>, progress: Arc<Progress>) -> Self {
        Self { body: Either::Right(Gathering::new(body)), end: End(Some(progress)) }
    }

    pub(super) fn empty(body: B) -> Self {
        Self { body: Either::Left(body), end: End(None) }
    }
}

impl<B: Again> Upload<B> {
    /// A body of which nothing was read.
    pub(super) fn into_body(self) -> Option<B> {
        match self.body {
            Either::Left(body) => Some(body),
            Either::Right(lent) => lent.into_inner().take_back(),
        }
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Body for Upload<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.body {
            Either::Left(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Either::Right(lent) => {
                let part = Pin::new(lent).poll_frame(cx);
                if let Some(progress) = &self.end.0 {
                    // What the socket takes says nothing of this one body.
                    progress.note_part(&part);
                }
                part
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Either::Left(body) => body.is_end_stream(),
            Either::Right(lent) => lent.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Either::Left(body) => body.size_hint(),
            Either::Right(lent) => lent.size_hint(),
        }
    }
}

/// hyper drops a body when the last of it is in the buffer: from then on the server is due.
#[derive(Debug)]
struct End(Option<Arc<Progress>>);

impl Drop for End {
    fn drop(&mut self) {
        if let Some(progress) = &self.0 {
            progress.uploading.store(false, Ordering::Relaxed);
            progress.note_move();
        }
    }
}
