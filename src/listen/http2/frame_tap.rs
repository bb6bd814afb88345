//! A connection as h2 sees it: without the heads of requests, which are read here. Where its frames stand is noted in the
//! connection's `Progress`.

use std::io;
use std::io::IoSlice;
use std::mem;
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

use super::frames::Frames;
use super::unwritten::Unwritten;
use super::waiting::Waiting;
use crate::listen::Connection;
use crate::listen::channel::Channel;

/// What HTTP/2 is read from and written to.
#[derive(Debug)]
pub(super) struct FrameTap {
    channel: Channel,
    connection: Arc<Connection>,
    frames: Frames,
    /// What was read and not looked at.
    unread: BytesMut,
    /// What is for h2 before anything else.
    behind: Vec<u8>,
    waiting: Waiting,
    unwritten: Unwritten,
}

impl FrameTap {
    /// `read` was read to recognize the protocol. Heads may be `most` bytes long, and are left with `waiting`.
    pub(super) fn new(
        channel: Channel,
        connection: Arc<Connection>,
        read: BytesMut,
        most: usize,
        waiting: Waiting,
        unwritten: Unwritten,
    ) -> Self {
        let frames = Frames::new(most, waiting.clone());
        Self { channel, connection, frames, unread: read, behind: Vec::new(), waiting, unwritten }
    }

    /// Puts behind what is there already what came, as it came. `false`: nothing will.
    fn poll_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<bool>> {
        if self.unread.is_empty() {
            let before = buf.filled().len();
            match ready!(Pin::new(&mut self.channel).poll_read(cx, buf)) {
                // Frames say themselves whether they are whole, and many clients do not say goodbye to TLS.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                read => read?,
            }
            return Poll::Ready(Ok(buf.filled().len() > before));
        }
        let length = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread[..length]);
        self.unread.advance(length);
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
        }
        Poll::Ready(Ok(true))
    }

    /// Leaves of what came what h2 is to read. Whether that is anything.
    fn sift(&mut self, buf: &mut ReadBuf<'_>, before: usize) -> io::Result<bool> {
        let fresh = &mut buf.filled_mut()[before..];
        let sifted = self.frames.sift(fresh).map_err(io::Error::other)?;
        self.connection.progress.set_mid_frame(self.frames.unfinished());
        if sifted.used < fresh.len() {
            let later = mem::take(&mut self.unread);
            self.unread.extend_from_slice(&fresh[sifted.used..]);
            self.unread.extend_from_slice(&later);
        }
        self.behind = sifted.behind;
        buf.set_filled(before + sifted.kept);
        Ok(sifted.kept > 0)
    }

    fn note_write(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(length)) = written {
            self.frames.wrote(*length);
            self.unwritten.wrote(*length);
        }
    }
}

impl AsyncRead for FrameTap {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            if !this.behind.is_empty() {
                let length = this.behind.len().min(buf.remaining());
                buf.put_slice(&this.behind[..length]);
                this.behind.drain(..length);
                return Poll::Ready(Ok(()));
            }
            this.waiting.are_seen();
            if this.waiting.has_failed() {
                // The connection is told.
                return Poll::Pending;
            }
            if this.waiting.is_full() || this.frames.pauses() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !ready!(this.poll_bytes(cx, buf))? {
                this.connection.progress.set_read_closed(true);
                return Poll::Ready(Ok(()));
            }
            if this.sift(buf, before)? {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for FrameTap {
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
