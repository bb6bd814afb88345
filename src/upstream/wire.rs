//! A server's socket and a request's body as hyper sees them. What passes through is noted, so that waiting for the
//! server can be told from waiting for the client.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::time::Instant;
use tokio_util::either::Either;

use super::again::Again;
use super::again::Lent;
use super::stream::Stream;
use crate::gather::poll_write_gathered;

/// What happened on a connection since the request under way was sent.
#[derive(Debug)]
pub(super) struct Wire {
    opened: Instant,
    /// When the request, or a part of its body, last went out: microseconds since `opened`.
    progress: AtomicU64,
    /// Part of the request's body is still to be sent.
    uploading: AtomicBool,
    /// The server takes no more.
    blocked: AtomicBool,
    /// A byte of the answer has arrived.
    answered: AtomicBool,
    /// The request's body failed.
    broke_off: AtomicBool,
}

impl Wire {
    pub(super) fn new() -> Self {
        Self {
            opened: Instant::now(),
            progress: AtomicU64::new(0),
            uploading: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            broke_off: AtomicBool::new(false),
        }
    }

    /// A request is about to be sent.
    pub(super) fn begin(&self, uploading: bool) {
        self.uploading.store(uploading, Ordering::Relaxed);
        self.blocked.store(false, Ordering::Relaxed);
        self.answered.store(false, Ordering::Relaxed);
        self.note_progress();
    }

    pub(super) fn answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Whether the body of a request on a shared connection failed.
    pub(super) fn broke_off(&self) -> bool {
        self.broke_off.load(Ordering::Relaxed)
    }

    /// Since when it is the server's turn; now, while it is the client's.
    pub(super) fn server_is_due_since(&self) -> Instant {
        if self.uploading.load(Ordering::Relaxed) && !self.blocked.load(Ordering::Relaxed) {
            return Instant::now();
        }
        self.opened + Duration::from_micros(self.progress.load(Ordering::Relaxed))
    }

    fn note_progress(&self) {
        let micros = u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.progress.store(micros, Ordering::Relaxed);
    }

    /// The next part of a body was asked for: the server takes what there is, and `part` tells whose turn it is.
    fn note_part<T, E>(&self, part: &Poll<Option<Result<T, E>>>) {
        self.blocked.store(part.is_ready(), Ordering::Relaxed);
        if part.is_ready() {
            self.note_progress();
        }
        if matches!(part, Poll::Ready(Some(Err(_)))) {
            self.broke_off.store(true, Ordering::Relaxed);
        }
    }

    fn note_write(&self, written: &Poll<io::Result<usize>>) {
        self.blocked.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() && self.uploading.load(Ordering::Relaxed) {
            self.note_progress();
        }
    }
}

/// A server's socket.
#[derive(Debug)]
pub(super) struct Line {
    stream: Stream,
    wire: Arc<Wire>,
}

impl Line {
    pub(super) fn new(stream: Stream, wire: Arc<Wire>) -> Self {
        Self { stream, wire }
    }
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.wire.answered.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wire.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = poll_write_gathered(Pin::new(&mut self.stream), cx, slices);
        self.wire.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of a request on its way to a server.
#[derive(Debug)]
pub(super) struct Upload<B> {
    body: Either<B, Lent<B>>,
    end: UploadEnd,
}

impl<B> Upload<B> {
    /// A body that is not empty.
    pub(super) fn noted(body: B, wire: Arc<Wire>) -> Self {
        Self { body: Either::Left(body), end: UploadEnd(Some(wire)) }
    }

    /// The same on a connection with other requests, where a request may be refused unprocessed.
    pub(super) fn shared(body: Lent<B>, wire: Arc<Wire>) -> Self {
        Self { body: Either::Right(body), end: UploadEnd(Some(wire)) }
    }

    pub(super) fn empty(body: B) -> Self {
        Self { body: Either::Left(body), end: UploadEnd(None) }
    }
}

impl<B: Again> Upload<B> {
    /// A body of which nothing was read.
    pub(super) fn into_body(self) -> Option<B> {
        match self.body {
            Either::Left(body) => Some(body),
            Either::Right(lent) => lent.take_back(),
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Upload<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.body {
            Either::Left(body) => Pin::new(body).poll_frame(cx),
            Either::Right(lent) => {
                let part = Pin::new(lent).poll_frame(cx);
                if let Some(wire) = &self.end.0 {
                    // What the socket takes says nothing of this one body.
                    wire.note_part(&part);
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
struct UploadEnd(Option<Arc<Wire>>);

impl Drop for UploadEnd {
    fn drop(&mut self) {
        if let Some(wire) = &self.0 {
            wire.uploading.store(false, Ordering::Relaxed);
            wire.note_progress();
        }
    }
}
