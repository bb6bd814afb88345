//! A client's socket. It notes each write in the connection's `Progress`, so that clients that do not read are found.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::Interest;
use tokio::io::ReadBuf;

use super::Connection;
use super::client_stream::ClientStream;
use super::connections::ConnectionPermit;
use super::progress::Progress;
use crate::coalesce::poll_write_coalesced;

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
        let ready = pin!(self.stream.ready(Interest::READABLE)).poll(&mut Context::from_waker(Waker::noop()));
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }

    /// Whether nothing can reach the client any more: the connection was reset, not only closed on its side.
    pub(super) fn has_failed(&self) -> bool {
        let ready = pin!(self.stream.ready(Interest::WRITABLE)).poll(&mut Context::from_waker(Waker::noop()));
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_write_closed())
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
