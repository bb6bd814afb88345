//! What is known about one client's connection, and where it stands.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use super::budget::Budget;
use super::connections::Group;
use super::connections::Order;
use super::tls::TlsInfo;

/// The facts of a connection.
#[derive(Debug)]
pub struct Connection {
    /// Who connected, or for whom a trusted proxy said that it did.
    pub peer: SocketAddr,
    /// Where.
    pub local: SocketAddr,
    /// More than these in one request are too many. HTTP/1 sees to it itself; HTTP/2 only bounds their bytes.
    pub max_headers: usize,
    /// For what is kept of the bodies of requests before those are decided.
    pub peeked: Budget,
    /// For what is kept of answers until it is known what they mean.
    pub inspected: Budget,
    tls_info: OnceLock<TlsInfo>,
    group: Arc<Group>,
    pub(super) progress: Progress,
}

impl Connection {
    /// A connection among these.
    pub(super) fn new(peer: SocketAddr, local: SocketAddr, max_headers: usize, group: &Arc<Group>) -> Self {
        Self {
            peer,
            local,
            max_headers,
            peeked: Budget::default(),
            inspected: Budget::default(),
            tls_info: OnceLock::new(),
            group: Arc::clone(group),
            progress: Progress::default(),
        }
    }

    /// Runs what outlives the request, a tunnel for instance, until it is done or connections are cut.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let group = Arc::clone(&self.group);
        tokio::spawn(async move {
            tokio::select! {
                () = ordered(&group, Order::Cut) => {}
                () = task => {}
            }
        });
    }

    /// Returns when the process is about to end, and requests under way should not be long.
    pub async fn ending(&self) {
        ordered(self.group.root(), Order::Drain).await;
    }

    /// Whether the client has closed its side: it has left, or has said all. Without a request under way it has left.
    pub fn has_left(&self) -> bool {
        self.progress.read_closed()
    }

    /// Looks, when the connection's own future comes to rest, whether the client has closed its side behind what was
    /// not read yet. Not needed over HTTP/2, where everything is read.
    pub fn ask_whether_it_left(&self) {
        self.progress.set_is_asked(true);
    }

    /// The client has closed its side, and is taken for one that has left: it gets no answer, and the connection ends.
    pub fn abandon(&self) {
        self.progress.set_abandoned(true);
    }

    /// What is known of the client's TLS; `None`: it speaks in clear.
    pub fn tls_info(&self) -> Option<&TlsInfo> {
        self.tls_info.get()
    }

    /// The handshake is through.
    pub(super) fn set_tls_info(&self, tls_info: TlsInfo) {
        // There is only one handshake.
        let _ = self.tls_info.set(tls_info);
    }

    /// Whether it should end as soon as nobody minds.
    pub(super) fn is_retiring(&self) -> bool {
        self.group.current_order() != Order::Run
    }

    pub(super) fn group(&self) -> &Group {
        &self.group
    }
}

/// Returns when a group is told this, or what includes it.
pub(super) async fn ordered(group: &Group, order: Order) {
    loop {
        let ordered = group.ordered.notified();
        if group.current_order() >= order {
            return;
        }
        ordered.await;
    }
}

/// Where a connection stands, written by its socket and its requests, read by its watchdog.
///
/// It is the connection's own tasks that touch it, on one core: atomics because they share it, seldom because two threads
/// meet here.
#[derive(Debug, Default)]
pub(super) struct Progress {
    phase: AtomicU8,
    /// Requests so far.
    served: AtomicU32,
    /// Requests under way, and the length of their heads (HTTP/2).
    active: AtomicU32,
    heads: AtomicUsize,
    /// Writes that went through so far, and their bytes.
    writes: AtomicU32,
    written: AtomicU64,
    /// The socket took no more.
    write_blocked: AtomicBool,
    /// Writes are tried until one fails, though the socket has not said that it takes more.
    insists: AtomicBool,
    /// The client has taken nothing for too long: what it was sent and has not taken is not kept for it.
    given_up: AtomicBool,
    /// The client said that nothing follows.
    read_closed: AtomicBool,
    /// Someone wants to know whether it did, though not all was read before, or whether it has gone since.
    is_asked: AtomicBool,
    /// The client closed its side in the middle of a request, or while that was held: what it asked for is not awaited.
    abandoned: AtomicBool,
    /// Inside a frame that is not data, or between the frames of one head (HTTP/2).
    mid_frame: AtomicBool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Nothing was received yet.
    Fresh,
    /// Part of a head was.
    Head,
    /// A request is under way.
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

    /// A request's head was read whole.
    pub(super) fn begin(&self) {
        self.enter(Phase::Busy);
        bump(&self.served);
    }

    pub(super) fn served(&self) -> u32 {
        self.served.load(Ordering::Relaxed)
    }

    /// With a head of so many bytes.
    pub(super) fn stream_opened(&self, head: usize) {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.heads.fetch_add(head, Ordering::Relaxed);
    }

    pub(super) fn stream_closed(&self, head: usize) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        self.heads.fetch_sub(head, Ordering::Relaxed);
    }

    /// How long the heads of all streams are.
    pub(super) fn heads(&self) -> usize {
        self.heads.load(Ordering::Relaxed)
    }

    pub(super) fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    pub(super) fn wrote(&self, bytes: usize) {
        bump(&self.writes);
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
    insists, set_insists;
    given_up, set_given_up;
    read_closed, set_read_closed;
    is_asked, set_is_asked;
    abandoned, set_abandoned;
    mid_frame, set_mid_frame;
}

/// Counts without a locked instruction: only the connection's own task writes.
fn bump(counter: &AtomicU32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
