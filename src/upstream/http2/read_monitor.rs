//! A stream that knows when its first and its last byte arrived.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use parking_lot::Mutex;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::upstream::stream::ServerStream;

/// A stream that reports its first byte, and keeps when it was last read from.
#[derive(Debug)]
pub(super) struct ReadMonitor {
    stream: ServerStream,
    first_byte: Option<oneshot::Sender<()>>,
    last_read: LastRead,
}

/// When bytes last arrived. Reader and writer are on one core: the compiler asks for the lock.
#[derive(Clone, Debug)]
pub(super) struct LastRead(Arc<Mutex<Instant>>);

impl LastRead {
    pub(super) fn at(&self) -> Instant {
        *self.0.lock()
    }
}

impl ReadMonitor {
    /// The receiver gets `()` with the first byte.
    pub(super) fn new(stream: ServerStream) -> (Self, oneshot::Receiver<()>, LastRead) {
        let (sender, first_byte) = oneshot::channel();
        let last_read = LastRead(Arc::new(Mutex::new(Instant::now())));
        (Self { stream, first_byte: Some(sender), last_read: last_read.clone() }, first_byte, last_read)
    }
}

impl AsyncRead for ReadMonitor {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            *self.last_read.0.lock() = Instant::now();
            if let Some(sender) = self.first_byte.take() {
                // The receiver may be gone.
                let _ = sender.send(());
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ReadMonitor {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
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
