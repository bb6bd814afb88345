//! The state of a connection, as its watchdog sees it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

/// The state of a connection. Its socket and its requests write it, its watchdog reads it.
///
/// The fields are atomics because several tasks share them. Almost always these run on one core.
#[derive(Debug, Default)]
pub(super) struct Progress {
    phase: AtomicU8,
    /// Requests so far.
    served: AtomicU32,
    /// Requests in progress, and the bytes of their heads (HTTP/2).
    active: AtomicU32,
    heads: AtomicUsize,
    /// Reads of any bytes so far (HTTP/2).
    reads: AtomicU32,
    /// Writes so far, and their bytes.
    writes: AtomicU32,
    written: AtomicU64,
    /// The socket was full at the last write.
    write_blocked: AtomicBool,
    /// Writes are tried, though the kernel has not reported that the socket is writable.
    retries_writes: AtomicBool,
    /// The client has read nothing for too long: the socket is reset, and unsent data is dropped.
    reset_on_close: AtomicBool,
    /// The client has closed its side.
    read_closed: AtomicBool,
    /// The task must check whether the client has closed its side behind unread bytes, or has gone.
    check_requested: AtomicBool,
    /// The client closed its side within a request, or while the request was held: the response is not awaited.
    abandoned: AtomicBool,
    /// Within a frame that is not DATA, or between the frames of one head (HTTP/2).
    mid_frame: AtomicBool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Nothing was received yet.
    Fresh,
    /// A part of a head was received.
    Head,
    /// A request is in progress.
    Busy,
    /// Between two requests.
    Idle,
    /// The connection no longer speaks HTTP.
    Tunnel,
}

impl Progress {
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Fresh,
            1 => Phase::Head,
            2 => Phase::Busy,
            3 => Phase::Idle,
            _ => Phase::Tunnel,
        }
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// The head of a request was read.
    pub(super) fn begin(&self) {
        self.enter(Phase::Busy);
        increment(&self.served);
    }

    pub(super) fn served(&self) -> u32 {
        self.served.load(Ordering::Relaxed)
    }

    /// A stream was opened, with a head of so many bytes.
    pub(super) fn stream_opened(&self, head: usize) {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.heads.fetch_add(head, Ordering::Relaxed);
    }

    pub(super) fn stream_closed(&self, head: usize) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        self.heads.fetch_sub(head, Ordering::Relaxed);
    }

    /// The bytes of the heads of all streams.
    pub(super) fn heads(&self) -> usize {
        self.heads.load(Ordering::Relaxed)
    }

    pub(super) fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// The client has sent bytes.
    pub(super) fn note_read(&self) {
        increment(&self.reads);
    }

    pub(super) fn reads(&self) -> u32 {
        self.reads.load(Ordering::Relaxed)
    }

    pub(super) fn wrote(&self, bytes: usize) {
        increment(&self.writes);
        self.written.store(self.written().wrapping_add(bytes as u64), Ordering::Relaxed);
        self.set_write_blocked(false);
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn writes(&self) -> u32 {
        self.writes.load(Ordering::Relaxed)
    }
}

macro_rules! flags {
    ($($flag:ident, $set:ident;)*) => {
        impl Progress {
            $(
                pub(super) fn $flag(&self) -> bool {
                    self.$flag.load(Ordering::Relaxed)
                }

                pub(super) fn $set(&self, value: bool) {
                    self.$flag.store(value, Ordering::Relaxed);
                }
            )*
        }
    };
}

flags! {
    write_blocked, set_write_blocked;
    retries_writes, set_retries_writes;
    reset_on_close, set_reset_on_close;
    read_closed, set_read_closed;
    check_requested, set_check_requested;
    abandoned, set_abandoned;
    mid_frame, set_mid_frame;
}

/// Increments without a locked instruction: only the connection's own task writes.
fn increment(counter: &AtomicU32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
