//! A client's connection after an upgrade from HTTP/1.1.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use bytes::Buf;
use bytes::BytesMut;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;

use crate::listen::channel::Channel;

/// The connection from the first byte after the 101.
#[derive(Debug)]
pub(in crate::listen) struct Http1Tunnel {
    channel: Channel,
    /// Bytes that were read with the request.
    read: BytesMut,
}

impl Http1Tunnel {
    pub(super) fn new(channel: Channel, read: BytesMut) -> Self {
        Self { channel, read }
    }
}

impl AsyncRead for Http1Tunnel {
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

impl AsyncWrite for Http1Tunnel {
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
