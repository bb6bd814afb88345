//! The byte stream that h2 reads: the client's, with a stub in place of each head. It notes in the connection's `Progress`
//! whether the client stopped within a frame.

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

use super::frame_filter::FrameFilter;
use super::pending_heads::PendingHeads;
use super::write_backlog::WriteBacklog;
use crate::listen::Connection;
use crate::listen::channel::Channel;

/// The byte stream of one connection, as h2 reads and writes it.
#[derive(Debug)]
pub(super) struct FrameTap {
    channel: Channel,
    connection: Arc<Connection>,
    frames: FrameFilter,
    /// Bytes that were read and not filtered yet.
    unread: BytesMut,
    /// Bytes that h2 reads next.
    behind: Vec<u8>,
    pending_heads: PendingHeads,
    backlog: WriteBacklog,
}

impl FrameTap {
    /// `read` are bytes that were read to recognize the protocol. Decoded heads may have `max_head` bytes. They are put into
    /// `pending_heads`.
    pub(super) fn new(
        channel: Channel,
        connection: Arc<Connection>,
        read: BytesMut,
        max_head: usize,
        pending_heads: PendingHeads,
        backlog: WriteBacklog,
    ) -> Self {
        let frames = FrameFilter::new(max_head, pending_heads.clone());
        Self { channel, connection, frames, unread: read, behind: Vec::new(), pending_heads, backlog }
    }

    /// Appends fresh bytes to `buf`, not filtered. `false`: the client has closed.
    fn poll_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<bool>> {
        if self.unread.is_empty() {
            let before = buf.filled().len();
            match ready!(Pin::new(&mut self.channel).poll_read(cx, buf)) {
                // Frames have a length of their own, and many clients close TLS without a `close_notify`.
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

    /// Filters the fresh bytes. Whether any are left for h2.
    fn filter(&mut self, buf: &mut ReadBuf<'_>, before: usize) -> bool {
        let fresh = &mut buf.filled_mut()[before..];
        self.frames.answered(self.backlog.take_answered());
        let filtered = self.frames.filter(fresh);
        self.connection.progress.set_mid_frame(self.frames.is_mid_frame());
        if filtered.used < fresh.len() {
            let later = mem::take(&mut self.unread);
            self.unread.extend_from_slice(&fresh[filtered.used..]);
            self.unread.extend_from_slice(&later);
        }
        self.behind = filtered.behind;
        buf.set_filled(before + filtered.kept);
        filtered.kept > 0
    }

    fn note_write(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(length)) = written {
            self.frames.wrote(*length);
            self.backlog.wrote(*length);
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
            this.pending_heads.mark_seen();
            if this.pending_heads.has_failed() {
                // The session ends the connection.
                return Poll::Pending;
            }
            if this.pending_heads.is_full() || this.frames.take_pause() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !ready!(this.poll_bytes(cx, buf))? {
                this.connection.progress.set_read_closed(true);
                return Poll::Ready(Ok(()));
            }
            this.connection.progress.note_read();
            if this.filter(buf, before) {
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
