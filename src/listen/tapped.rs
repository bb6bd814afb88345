//! A connection of HTTP/2 as hyper sees it. Where its frames stand is noted in the connection's `Progress`.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Buf;
use bytes::BytesMut;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;

use super::Connection;
use super::channel::Channel;
use super::frames::Frames;

/// What HTTP/2 is read from and written to.
#[derive(Debug)]
pub(super) struct Tapped {
    channel: Channel,
    connection: Arc<Connection>,
    frames: Frames,
    /// What was read to recognize the protocol.
    prefix: BytesMut,
}

impl Tapped {
    pub(super) fn new(channel: Channel, connection: Arc<Connection>, prefix: BytesMut) -> Self {
        Self { channel, connection, frames: Frames::new(), prefix }
    }

    fn note_read(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.frames.read(bytes).map_err(io::Error::other)?;
        self.connection.progress.set_mid_frame(self.frames.unfinished());
        Ok(())
    }

    fn note_write(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(length)) = written {
            self.frames.wrote(*length);
        }
    }
}

impl AsyncRead for Tapped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        if this.prefix.is_empty() {
            match ready!(Pin::new(&mut this.channel).poll_read(cx, buf)) {
                // Frames say themselves whether they are whole, and many clients do not say goodbye to TLS.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                read => read?,
            }
            if buf.filled().len() == before && buf.remaining() > 0 {
                this.connection.progress.set_read_closed(true);
            }
        } else {
            let length = this.prefix.len().min(buf.remaining());
            buf.put_slice(&this.prefix[..length]);
            this.prefix.advance(length);
            if this.prefix.is_empty() {
                this.prefix = BytesMut::new();
            }
        }
        Poll::Ready(this.note_read(&buf.filled()[before..]))
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.channel).poll_write(cx, bytes);
        self.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.channel).poll_write_vectored(cx, slices);
        self.note_write(&written);
        written
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
