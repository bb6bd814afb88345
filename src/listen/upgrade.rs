//! What becomes of a connection, or of one stream, when it speaks HTTP no more.

use std::future::pending;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use parking_lot::Mutex;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::sync::oneshot;

use super::http1;
use super::http2;

/// An extension of requests that ask for an upgrade: the way to the client, once such a request was answered with 101.
/// Clones are the same, and one of them gets it.
///
/// Over HTTP/2 that is an extended CONNECT (RFC 8441), which is given as the GET that HTTP/1.1 would have for it; its 101
/// is written as 200.
#[derive(Clone, Debug)]
pub struct OnUpgrade(Arc<Mutex<oneshot::Receiver<Upgraded>>>);

/// The answer was another one, or the client has left.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the connection was not upgraded")]
pub struct NotUpgraded;

/// The way to a client behind the 101, from its first byte.
#[derive(Debug)]
pub struct Upgraded(Way);

#[derive(Debug)]
enum Way {
    Http1(http1::Tunnel),
    Http2(http2::Tunnel),
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
    /// Ends when the client has given up its stream, which shows nowhere else once it has said all, and keeps what it
    /// sends meanwhile small. To be awaited by the task that reads and writes. Over HTTP/1.1 it never ends.
    pub fn given_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let stream = match &self.0 {
            Way::Http1(_) => None,
            Way::Http2(tunnel) => Some(tunnel.given_up()),
        };
        async {
            match stream {
                Some(given_up) => given_up.await,
                None => pending().await,
            }
        }
    }
}

impl From<http1::Tunnel> for Upgraded {
    fn from(tunnel: http1::Tunnel) -> Self {
        Self(Way::Http1(tunnel))
    }
}

impl From<http2::Tunnel> for Upgraded {
    fn from(tunnel: http2::Tunnel) -> Self {
        Self(Way::Http2(tunnel))
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Way::Http1(tunnel) => Pin::new(tunnel).poll_read(cx, buf),
            Way::Http2(tunnel) => Pin::new(tunnel).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Way::Http1(tunnel) => Pin::new(tunnel).poll_write(cx, bytes),
            Way::Http2(tunnel) => Pin::new(tunnel).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Way::Http1(tunnel) => Pin::new(tunnel).poll_write_vectored(cx, slices),
            Way::Http2(tunnel) => Pin::new(tunnel).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Way::Http1(tunnel) => tunnel.is_write_vectored(),
            Way::Http2(tunnel) => tunnel.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Way::Http1(tunnel) => Pin::new(tunnel).poll_flush(cx),
            Way::Http2(tunnel) => Pin::new(tunnel).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Way::Http1(tunnel) => Pin::new(tunnel).poll_shutdown(cx),
            Way::Http2(tunnel) => Pin::new(tunnel).poll_shutdown(cx),
        }
    }
}
