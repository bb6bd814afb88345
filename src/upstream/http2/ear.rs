//! A stream that tells when the first byte has come, and when the last.

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

use crate::gather::poll_write_gathered;
use crate::upstream::stream::Stream;

#[derive(Debug)]
pub(super) struct Ear {
    stream: Stream,
    first: Option<oneshot::Sender<()>>,
    heard: Heard,
}

/// When something came. Both who write and who read it are on one core: the lock is for the compiler.
#[derive(Clone, Debug)]
pub(super) struct Heard(Arc<Mutex<Instant>>);

impl Heard {
    pub(super) fn last(&self) -> Instant {
        *self.0.lock()
    }
}

impl Ear {
    pub(super) fn new(stream: Stream) -> (Self, oneshot::Receiver<()>, Heard) {
        let (first, came) = oneshot::channel();
        let heard = Heard(Arc::new(Mutex::new(Instant::now())));
        (Self { stream, first: Some(first), heard: heard.clone() }, came, heard)
    }
}

impl AsyncRead for Ear {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            *self.heard.0.lock() = Instant::now();
            if let Some(first) = self.first.take() {
                // Nobody may be waiting any more.
                let _ = first.send(());
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Ear {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_write_gathered(Pin::new(&mut self.stream), cx, slices)
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
