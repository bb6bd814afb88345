//! A server's socket: TCP with or without TLS, or a Unix socket.

use std::future::poll_fn;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::pin::pin;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use hyper_util::client::legacy::connect::Connected;
use hyper_util::client::legacy::connect::Connection;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::io::ReadHalf;
use tokio::net::TcpStream;
use tokio::net::UnixStream;
use tokio::task::coop::unconstrained;
use tokio_rustls::client::TlsStream;

use crate::coalesce::poll_write_coalesced;

#[derive(Debug)]
pub(super) enum ServerStream {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// Only for reading: another task writes.
    Reading(Box<ReadHalf<Self>>),
}

impl ServerStream {
    /// Whether the server, as far as is known, has sent nothing more and has not closed.
    pub(super) fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        // Without TLS this asks the kernel only if it has reported something.
        let would_block = |read: io::Result<usize>| read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        match self {
            Self::Plain(stream) => return would_block(stream.try_read(&mut byte)),
            Self::Unix(stream) => return would_block(stream.try_read(&mut byte)),
            Self::Tls(_) | Self::Reading(_) => {}
        }
        let read = poll_fn(|cx| Pin::new(&mut *self).poll_read(cx, &mut ReadBuf::new(&mut byte)));
        // Unconstrained: a task without budget would be told that no bytes have arrived.
        pin!(unconstrained(read)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Reading(half) => Pin::new(half).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Reading(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => poll_write_coalesced(Pin::new(stream), cx, slices),
            Self::Unix(stream) => poll_write_coalesced(Pin::new(stream), cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Reading(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Reading(_) => false,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Reading(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Reading(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }
}

/// What the HTTP client of health checks knows of a connection.
impl Connection for ServerStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
