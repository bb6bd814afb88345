//! The stream of bytes from and to a client: over TCP, or over a Unix socket.

use std::io;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use crate::listen::Connection;
use crate::listen::connection::Progress;
use crate::listen::connections::ConnectionPermit;
use crate::words::coalesce::poll_write_coalesced;

/// The stream of bytes from and to a client.
#[derive(Debug)]
pub(super) enum ClientStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ClientStream {
    /// Waits until the kernel reports one of these.
    pub(super) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await,
            Self::Unix(stream) => stream.ready(interest).await,
        }
    }

    /// Does something that would block unless the kernel has reported these.
    pub(super) fn try_io<R>(&self, interest: Interest, work: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        match self {
            Self::Tcp(stream) => stream.try_io(interest, work),
            Self::Unix(stream) => stream.try_io(interest, work),
        }
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(buffer),
            Self::Unix(stream) => stream.try_read(buffer),
        }
    }
}

impl AsFd for ClientStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl AsyncRead for ClientStream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientStream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

// The byte stream of a client: a plain socket, or TLS on a socket.

/// The byte stream of a client.
#[derive(Debug)]
pub(super) enum Channel {
    Plain(Socket),
    /// On the heap: connections without TLS have no room for it.
    Tls(Box<TlsStream<Socket>>),
}

impl Channel {
    pub(super) fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Sends a TLS `close_notify`, as far as that goes without waiting. Without TLS, closing the socket says the same.
    pub(super) fn send_close_notify(&mut self) {
        if let Self::Tls(stream) = self {
            let _ = Pin::new(&mut **stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl AsyncRead for Channel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Channel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}

// A client's socket. It notes each write in the connection's `Progress`, so that clients that do not read are found.

/// A socket with the permit of its connection.
#[derive(Debug)]
pub(super) struct Socket {
    stream: ClientStream,
    connection: Arc<Connection>,
    _permit: ConnectionPermit,
}

impl Socket {
    pub(super) fn new(stream: ClientStream, connection: Arc<Connection>, permit: ConnectionPermit) -> Self {
        Self { stream, connection, _permit: permit }
    }

    /// Whether the client has closed its side, maybe behind unread bytes.
    pub(super) fn has_ended(&self) -> bool {
        self.ready(Interest::READABLE).is_read_closed()
    }

    /// Whether there may be unread bytes.
    pub(super) fn is_readable(&self) -> bool {
        self.ready(Interest::READABLE).is_readable()
    }

    /// Whether nothing can reach the client any more: the connection was reset, not only closed on its side.
    pub(super) fn has_failed(&self) -> bool {
        self.ready(Interest::WRITABLE).is_write_closed()
    }

    /// What the kernel has told of the socket.
    fn ready(&self, interest: Interest) -> Ready {
        match pin!(self.stream.ready(interest)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(ready)) => ready,
            Poll::Ready(Err(_)) | Poll::Pending => Ready::EMPTY,
        }
    }

    fn progress(&self) -> &Progress {
        &self.connection.progress
    }

    /// Writes though the kernel has not reported the socket as writable. It does so only once a third of its buffer, maybe
    /// megabytes, is free, but takes fewer bytes on a direct call. This distinguishes a slow client from one that does
    /// not read.
    fn retry_write(&self, written: Poll<io::Result<usize>>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.progress().retries_writes() || written.is_ready() || bytes.is_empty() {
            return written;
        }
        match SockRef::from(&self.stream).send(bytes) {
            // The socket is full again: the next try waits for its turn.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.progress().set_retries_writes(false);
                Poll::Pending
            }
            sent => Poll::Ready(sent),
        }
    }

    fn note_write(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(written) => self.progress().wrote(written.as_ref().copied().unwrap_or(0)),
            Poll::Pending => self.progress().set_write_blocked(true),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.progress().reset_on_close() {
            // Without a reset, the kernel would keep megabytes for the client for minutes, and the client would not learn that the
            // connection is closed. This fails harmlessly if the connection has ended.
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        let written = self.retry_write(written, bytes);
        self.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = poll_write_coalesced(Pin::new(&mut self.stream), cx, slices);
        let first = slices.iter().find(|slice| !slice.is_empty());
        let written = self.retry_write(written, first.map_or(&[], |first| first));
        self.note_write(&written);
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
