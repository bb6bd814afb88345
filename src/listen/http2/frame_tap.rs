//! The byte stream between h2 and the client, in which each head has a stub in its place on the side of h2. It notes in the
//! connection's `Progress` whether the client stopped within a frame.

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{io, mem};

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::frame_filter::FrameFilter;
use crate::listen::Connection;
use crate::listen::client_stream::Channel;
use crate::listen::http2::frame_writer::{FrameWriter, WriteBacklog};
use crate::listen::http2::head_assembler::PendingHeads;
use crate::wire::http2::{CONTINUATION, DATA, HEADERS, RST_STREAM};

/// The byte stream of one connection, as h2 reads and writes it.
#[derive(Debug)]
pub(super) struct FrameTap {
    /// `None` only while this is dropped.
    channel: Option<Channel>,
    left: LeftChannel,
    connection: Arc<Connection>,
    frames: FrameFilter,
    /// Bytes that were read and not filtered yet.
    unread: BytesMut,
    /// Bytes that h2 reads next.
    behind: Vec<u8>,
    pending_heads: PendingHeads,
    backlog: WriteBacklog,
    writer: FrameWriter,
}

impl FrameTap {
    /// `read` are bytes that were read to recognize the protocol. Decoded heads may have `max_head` bytes. They are put into
    /// `pending_heads`. `left` gets the channel when h2 is done with this.
    pub(super) fn new(
        channel: Channel,
        left: LeftChannel,
        connection: Arc<Connection>,
        read: BytesMut,
        max_head: usize,
        pending_heads: PendingHeads,
        backlog: WriteBacklog,
    ) -> Self {
        let frames = FrameFilter::new(max_head, pending_heads.clone(), backlog.clone());
        let writer = FrameWriter::new(backlog.clone());
        let channel = Some(channel);
        Self { channel, left, connection, frames, unread: read, behind: Vec::new(), pending_heads, backlog, writer }
    }

    /// Appends fresh bytes to `buf`, not filtered. `false`: the client has closed.
    fn poll_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<bool>> {
        if self.unread.is_empty() {
            let before = buf.filled().len();
            match ready!(channel(&mut self.channel).poll_read(cx, buf)) {
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

    /// Writes once: what was taken from h2 so far, and `part` behind it. Returns how much of `part` was written.
    fn poll_write_behind(&mut self, part: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let slices = [IoSlice::new(self.writer.unwritten()), IoSlice::new(part)];
        let length = ready!(channel(&mut self.channel).poll_write_vectored(cx, &slices))?;
        if length == 0 && slices.iter().any(|slice| !slice.is_empty()) {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.frames.wrote(length);
        Poll::Ready(Ok(self.writer.wrote(length)))
    }

    /// Writes all that was taken from h2.
    fn poll_write_taken(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.writer.unwritten().is_empty() {
            ready!(self.poll_write_behind(&[], cx))?;
        }
        Poll::Ready(Ok(()))
    }
}

fn channel(channel: &mut Option<Channel>) -> Pin<&mut Channel> {
    Pin::new(channel.as_mut().expect("the tap is not dropped"))
}

impl AsyncRead for FrameTap {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        this.frames.all_is_handled();
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
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    /// What is taken and not written yet, for want of room, is written before anything else.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_write_taken(cx))?;
        let (taken, part) = this.writer.take(slices);
        match this.poll_write_behind(part, cx)? {
            Poll::Ready(length) => Poll::Ready(Ok(taken + length)),
            Poll::Pending if taken > 0 => Poll::Ready(Ok(taken)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_taken(cx))?;
        channel(&mut self.channel).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_taken(cx))?;
        channel(&mut self.channel).poll_shutdown(cx)
    }
}

impl Drop for FrameTap {
    fn drop(&mut self) {
        *self.left.0.lock() = self.channel.take();
    }
}

/// The byte stream that h2 leaves behind, which does not give it back: what the client still sends is read off it.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftChannel(Arc<Mutex<Option<Channel>>>);

impl LeftChannel {
    /// `None`: h2 still has it.
    pub(super) fn take(&self) -> Option<Channel> {
        self.0.lock().take()
    }
}

// Bounds the control frames of an HTTP/2 client: settings, pings, windows, priorities, resets. Each is allowed and some
// are needed, but a flood of them is work without a request.

/// Control frames in a row.
const MAX_FRAMES: u32 = 4096;

/// Control frames each second from a client without requests.
const PER_SECOND: u32 = 50;

/// Control frames that come with a request: priorities, windows.
const PER_HEAD: u32 = 4;

/// The price of a reset, which cost us a request. No client resets more than two streams in five for long.
const RESET_COST: u32 = 10;

/// One more frame is allowed for this many bytes that were sent. A client with small windows updates two windows for
/// each DATA frame, which is no longer than the windows. The answer to a control frame is a tenth of this.
const BYTES_PER_FRAME: usize = 128;

/// The budget of one connection. Requests and responses add to it, so that a busy client does not run out.
#[derive(Debug)]
pub(super) struct FrameBudget {
    left: u32,
    refilled: Instant,
}

impl FrameBudget {
    pub(super) fn new() -> Self {
        Self { left: MAX_FRAMES, refilled: Instant::now() }
    }

    /// Charges a frame of the client; `false`: the budget is spent.
    pub(super) fn note(&mut self, kind: u8) -> bool {
        match kind {
            // The bytes of these frames are bounded elsewhere.
            DATA | CONTINUATION => true,
            HEADERS => {
                self.refill(PER_HEAD);
                true
            }
            RST_STREAM => self.spend(RESET_COST),
            _ => self.spend(1),
        }
    }

    /// Notes that `streams` streams have got the beginning of their answers: a client that resets them then has read
    /// enough, such as the first message of many.
    pub(super) fn answered(&mut self, streams: u32) {
        self.refill(streams.saturating_mul(RESET_COST - 1));
    }

    /// Charges a malformed head; `false`: the budget is spent.
    pub(super) fn note_malformed(&mut self) -> bool {
        self.spend(RESET_COST)
    }

    /// Notes a write to the client, who may answer it with window updates or pings.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.refill(1 + u32::try_from(bytes / BYTES_PER_FRAME).unwrap_or(MAX_FRAMES));
    }

    fn refill(&mut self, amount: u32) {
        self.left = self.left.saturating_add(amount).min(MAX_FRAMES);
    }

    fn spend(&mut self, cost: u32) -> bool {
        if self.left < cost {
            // The clock is read only here: most connections never get here.
            let seconds = self.refilled.elapsed().as_secs();
            self.refilled += Duration::from_secs(seconds);
            self.refill(u32::try_from(seconds).unwrap_or(MAX_FRAMES).saturating_mul(PER_SECOND));
        }
        let Some(left) = self.left.checked_sub(cost) else { return false };
        self.left = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 6;

    /// How many frames of this kind are allowed in a row.
    fn allowed(budget: &mut FrameBudget, kind: u8) -> u32 {
        (0..10 * MAX_FRAMES).take_while(|_| budget.note(kind)).count().try_into().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_frames_is_refused_and_a_few_each_second_are_not() {
        let mut budget = FrameBudget::new();
        assert_eq!(allowed(&mut budget, PING), MAX_FRAMES);
        assert_eq!(allowed(&mut budget, RST_STREAM), 0);
        for _ in 0..100 {
            tokio::time::advance(Duration::from_millis(1500)).await;
            assert!(budget.note(PING));
        }
        // The seconds in between have added to the budget, once.
        assert!(allowed(&mut budget, PING) <= 2 * MAX_FRAMES);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(allowed(&mut budget, PING), 2 * PER_SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_served_may_go_on_for_ever() {
        let mut budget = FrameBudget::new();
        for _ in 0..10 * MAX_FRAMES {
            // Two of five streams are reset, and the client updates the windows after each full DATA frame.
            assert!(
                [HEADERS, HEADERS, HEADERS, HEADERS, HEADERS, RST_STREAM, RST_STREAM].map(|kind| budget.note(kind))
                    == [true; 7]
            );
            budget.wrote(16 * 1024);
            assert!([8, 8, PING].map(|kind| budget.note(kind)) == [true; 3]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_small_windows_gets_a_large_body() {
        let mut budget = FrameBudget::new();
        for _ in 0..10 * MAX_FRAMES {
            // As much as fits into windows of 255 bytes, on two streams.
            budget.wrote(2 * (9 + 255));
            assert!([8; 4].map(|kind| budget.note(kind)) == [true; 4]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn responses_to_control_frames_earn_too_little() {
        let mut budget = FrameBudget::new();
        let rounds = (0..MAX_FRAMES).take_while(|_| {
            budget.wrote(100 * (9 + 8));
            (0..100).all(|_| budget.note(PING))
        });
        assert!((40..60).contains(&rounds.count()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_resets_every_stream_once_it_is_answered_may_go_on_for_ever() {
        let mut budget = FrameBudget::new();
        for _ in 0..10 * MAX_FRAMES {
            assert!(budget.note(HEADERS));
            budget.answered(1);
            assert!(budget.note(RST_STREAM));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_resets_every_stream_is_soon_refused() {
        let mut budget = FrameBudget::new();
        let streams = (0..MAX_FRAMES).take_while(|_| budget.note(HEADERS) && budget.note(RST_STREAM)).count();
        assert!((500..1000).contains(&streams), "{streams}");
    }
}
