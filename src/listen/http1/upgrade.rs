//! What a connection becomes when it speaks HTTP no more.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use bytes::Buf;
use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::sync::oneshot;

use crate::listen::channel::Channel;

/// An extension of requests that ask for an upgrade: the connection itself, once such a request was answered with 101.
/// Clones are the same, and one of them gets it.
#[derive(Clone, Debug)]
pub struct OnUpgrade(Arc<Mutex<oneshot::Receiver<Upgraded>>>);

/// The answer was another one, or the client has left.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the connection was not upgraded")]
pub struct NotUpgraded;

/// A client's connection behind the 101, from its first byte.
#[derive(Debug)]
pub struct Upgraded {
    channel: Channel,
    /// What was read before its time.
    read: BytesMut,
}

impl OnUpgrade {
    pub(super) fn pair() -> (oneshot::Sender<Upgraded>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(Arc::new(Mutex::new(receiver))))
    }
}

impl Future for OnUpgrade {
    type Output = Result<Upgraded, NotUpgraded>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.0.lock()).poll(cx).map_err(|_| NotUpgraded)
    }
}

impl Upgraded {
    pub(super) fn new(channel: Channel, read: BytesMut) -> Self {
        Self { channel, read }
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.channel).poll_read(cx, buf);
        }
        let length = self.read.len().min(buf.remaining());
        buf.put_slice(&self.read[..length]);
        self.read.advance(length);
        if self.read.is_empty() {
            self.read = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.channel).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.channel).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.channel.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.channel).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.channel).poll_shutdown(cx)
    }
}
