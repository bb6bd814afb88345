//! A connection, or one HTTP/2 stream, after an upgrade to another protocol.

use std::future::pending;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use super::http1::Http1Tunnel;
use super::http2::Http2Tunnel;

/// An extension of requests that ask for an upgrade. It resolves to the upgraded connection after a response with 101. All
/// clones share one connection, and one of them gets it.
///
/// Over HTTP/2, an extended CONNECT (RFC 8441) asks for it. The handler sees the GET that HTTP/1.1 would have for it, and its
/// 101 is written as 200.
#[derive(Clone, Debug)]
pub struct OnUpgrade(Arc<Mutex<oneshot::Receiver<Upgraded>>>);

/// The response was not a 101, or the client has left.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the connection was not upgraded")]
pub struct NotUpgraded;

/// The connection from the first byte after the 101.
#[derive(Debug)]
pub struct Upgraded(Transport);

#[derive(Debug)]
enum Transport {
    Http1(Http1Tunnel),
    Http2(Http2Tunnel),
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
    /// Returns when the client has reset its HTTP/2 stream, which reads and writes do not show once the client has closed its
    /// side. It also takes small frames from h2. The task that reads and writes must await it. Over HTTP/1.1 it never
    /// returns.
    pub fn given_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let stream = match &self.0 {
            Transport::Http1(_) => None,
            Transport::Http2(tunnel) => Some(tunnel.given_up()),
        };
        async {
            match stream {
                Some(given_up) => given_up.await,
                None => pending().await,
            }
        }
    }
}

impl From<Http1Tunnel> for Upgraded {
    fn from(tunnel: Http1Tunnel) -> Self {
        Self(Transport::Http1(tunnel))
    }
}

impl From<Http2Tunnel> for Upgraded {
    fn from(tunnel: Http2Tunnel) -> Self {
        Self(Transport::Http2(tunnel))
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Transport::Http1(tunnel) => Pin::new(tunnel).poll_read(cx, buf),
            Transport::Http2(tunnel) => Pin::new(tunnel).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Transport::Http1(tunnel) => Pin::new(tunnel).poll_write(cx, bytes),
            Transport::Http2(tunnel) => Pin::new(tunnel).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Transport::Http1(tunnel) => Pin::new(tunnel).poll_write_vectored(cx, slices),
            Transport::Http2(tunnel) => Pin::new(tunnel).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Transport::Http1(tunnel) => tunnel.is_write_vectored(),
            Transport::Http2(tunnel) => tunnel.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Transport::Http1(tunnel) => Pin::new(tunnel).poll_flush(cx),
            Transport::Http2(tunnel) => Pin::new(tunnel).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Transport::Http1(tunnel) => Pin::new(tunnel).poll_shutdown(cx),
            Transport::Http2(tunnel) => Pin::new(tunnel).poll_shutdown(cx),
        }
    }
}
