//! One client's connection, as its requests see it.

use std::any::Any;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::sync::futures::Notified;
use tracing::debug;

use super::connections::{ConnectionGroup, DrainStage};
use super::tls::TlsInfo;
use crate::listen::ConnectionSettings;
use crate::listen::handler::{Budget, ClientProtocol};
use crate::listen::watchdog::{WaitReason, Watchdog};
use crate::rules::client::Networks;
use crate::wire::head::FieldBlock;

/// One client's connection.
#[derive(Debug)]
pub struct Connection {
    /// The address of the client: of the socket, or from the PROXY header of a trusted proxy.
    pub peer: SocketAddr,
    /// The address that the client connected to.
    pub local: SocketAddr,
    /// The proxies that may ask for decisions over this connection; `None`: its requests are forwarded.
    pub askers: Option<Arc<Networks>>,
    /// The most fields of one request. HTTP/1 enforces it itself. HTTP/2 bounds only their bytes.
    pub max_headers: usize,
    /// For the bodies of requests that are kept until the decision.
    pub peeked: Budget,
    /// For the parts of responses that are kept until their outcome is known.
    pub inspected: Budget,
    tls_info: OnceLock<TlsInfo>,
    kept: OnceLock<Arc<dyn Any + Send + Sync>>,
    added_fields: OnceLock<FieldBlock>,
    group: Arc<ConnectionGroup>,
    pub(super) progress: Progress,
}

impl Connection {
    /// A connection of this group.
    pub(super) fn new(
        peer: SocketAddr,
        local: SocketAddr,
        askers: Option<Arc<Networks>>,
        max_headers: usize,
        group: &Arc<ConnectionGroup>,
    ) -> Self {
        Self {
            peer,
            local,
            askers,
            max_headers,
            peeked: Budget::default(),
            inspected: Budget::default(),
            tls_info: OnceLock::new(),
            kept: OnceLock::new(),
            added_fields: OnceLock::new(),
            group: Arc::clone(group),
            progress: Progress::default(),
        }
    }

    /// Runs a task that outlives its request, such as a tunnel, until it is done or connections are cut.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let group = Arc::clone(&self.group);
        tokio::spawn(async move {
            tokio::select! {
                () = group.wait_for_stage(DrainStage::Cut) => {}
                () = task => {}
            }
        });
    }

    /// Returns when the process is about to end, so that requests in progress should end soon.
    pub async fn ending(&self) {
        self.group.root().wait_for_stage(DrainStage::Draining).await;
    }

    /// Whether the client has closed its side: it has left, or it only reads. Without a request in progress it has left.
    pub fn has_left(&self) -> bool {
        self.progress.read_closed()
    }

    /// Makes the connection's task check, when it next waits, whether the client has closed its side behind bytes that were
    /// not read yet. Not needed over HTTP/2, where all bytes are read.
    pub fn check_whether_client_left(&self) {
        self.progress.set_check_requested(true);
    }

    /// Treats a client that has closed its side as one that has left: it gets no response, and the connection ends.
    pub fn abandon(&self) {
        self.progress.set_abandoned(true);
    }

    /// A value that a handler keeps for its client until the connection ends; `None`: nothing of this type.
    pub fn kept<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.kept.get().and_then(|kept| Arc::clone(kept).downcast().ok())
    }

    /// Keeps a value for this client until the connection ends, unless one is kept already. A connection keeps values of one
    /// type.
    pub fn keep<T: Any + Send + Sync + Default>(&self) -> Option<Arc<T>> {
        Arc::clone(self.kept.get_or_init(|| Arc::new(T::default()))).downcast().ok()
    }

    /// The fields that a handler adds to each request of this connection. `make` makes them for the first one.
    pub fn added_fields(&self, make: impl FnOnce() -> FieldBlock) -> &FieldBlock {
        self.added_fields.get_or_init(make)
    }

    /// The facts of the TLS handshake; `None`: without TLS.
    pub fn tls_info(&self) -> Option<&TlsInfo> {
        self.tls_info.get()
    }

    /// The handshake is complete.
    pub(super) fn set_tls_info(&self, tls_info: TlsInfo) {
        // There is only one handshake.
        let _ = self.tls_info.set(tls_info);
    }

    /// Whether the connection should close after its current request.
    pub fn is_retiring(&self) -> bool {
        self.group.drain_stage() != DrainStage::Running
    }

    /// Whether the connection should close as soon as its requests are answered.
    pub(super) fn is_drained(&self) -> bool {
        self.group.drain_stage() >= DrainStage::Draining
    }

    pub(super) fn group(&self) -> &ConnectionGroup {
        &self.group
    }
}

// Decides when a connection should end: after a timeout, or because connections are drained.

/// Watches over one connection.
pub(super) struct ConnectionSupervisor<'a> {
    connection: &'a Connection,
    watchdog: Watchdog,
    stage: StageWatch<'a>,
}

/// The next action of a connection.
pub(super) enum SupervisorAction {
    /// Finish the requests in progress, accept no further ones (HTTP/2).
    WindDown,
    /// Try to write again: the socket may take some bytes, or turn out to have failed.
    Retry,
    /// Send a PING: nothing has come for long (HTTP/2).
    Ping,
    End,
}

impl<'a> ConnectionSupervisor<'a> {
    pub(super) fn new(connection: &'a Connection, settings: &ConnectionSettings) -> Self {
        let watchdog = Watchdog::new(settings);
        let watchdog = if connection.askers.is_some() { watchdog.pinging() } else { watchdog };
        Self { connection, watchdog, stage: StageWatch::new(connection.group()) }
    }

    /// Ready when a connection whose session has ended, of either protocol, has had its time to close.
    pub(super) fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.watchdog.start_closing();
        match self.stage.poll(cx) {
            Some(DrainStage::Cut) => Poll::Ready(()),
            _ => self.watchdog.poll(&self.connection.progress, ClientProtocol::Http1, cx).map(|_| ()),
        }
    }

    /// Called when the session is pending.
    pub(super) fn poll(&mut self, protocol: ClientProtocol, cx: &mut Context<'_>) -> Poll<SupervisorAction> {
        let progress = &self.connection.progress;
        match self.stage.poll(cx) {
            Some(DrainStage::Cut) => return Poll::Ready(SupervisorAction::End),
            Some(stage @ (DrainStage::Retiring | DrainStage::Draining)) => {
                if stage == DrainStage::Draining {
                    self.watchdog.shorten();
                }
                // Over HTTP/1, the next response says `Connection: close`.
                if protocol == ClientProtocol::Http2 {
                    // h2 waits until the client has confirmed the GOAWAY, and not every client does.
                    self.watchdog.start_closing();
                    return Poll::Ready(SupervisorAction::WindDown);
                }
            }
            Some(DrainStage::Running) | None => {}
        }
        match self.watchdog.poll(progress, protocol, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(WaitReason::Idle(_)) if protocol == ClientProtocol::Http2 => {
                // A GOAWAY tells the client that a request it has just sent is not answered.
                self.watchdog.start_closing();
                Poll::Ready(SupervisorAction::WindDown)
            }
            Poll::Ready(WaitReason::Sign) => {
                self.watchdog.await_pong(progress);
                Poll::Ready(SupervisorAction::Ping)
            }
            Poll::Ready(WaitReason::Answer(_)) => {
                self.watchdog.extend();
                progress.set_check_requested(true);
                Poll::Ready(SupervisorAction::Retry)
            }
            Poll::Ready(waited_for) if self.watchdog.may_retry_write(waited_for) => {
                progress.set_retries_writes(true);
                Poll::Ready(SupervisorAction::Retry)
            }
            Poll::Ready(waited_for) => {
                debug!(peer = %self.connection.peer, ?waited_for, "connection timed out");
                progress.set_reset_on_close(matches!(waited_for, WaitReason::Write(_) | WaitReason::SlowReader));
                Poll::Ready(SupervisorAction::End)
            }
        }
    }
}

/// Follows the drain stage of a connection's group, without a lock on each poll.
struct StageWatch<'a> {
    group: &'a ConnectionGroup,
    changed: Pin<Box<Notified<'a>>>,
    is_registered: bool,
    known: DrainStage,
}

impl<'a> StageWatch<'a> {
    fn new(group: &'a ConnectionGroup) -> Self {
        Self {
            group,
            changed: Box::pin(group.stage_changed.notified()),
            is_registered: false,
            known: DrainStage::Running,
        }
    }

    /// The stage, if it has changed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<DrainStage> {
        // A task's waker stays the same, so it is registered once.
        if !self.is_registered {
            self.is_registered = true;
            while self.changed.as_mut().poll(cx).is_ready() {
                self.changed.set(self.group.stage_changed.notified());
            }
        }
        let stage = self.group.drain_stage();
        if stage <= self.known {
            return None;
        }
        self.known = stage;
        self.is_registered = false;
        self.changed.set(self.group.stage_changed.notified());
        self.poll(cx).or(Some(stage))
    }
}

// The state of a connection, as its watchdog sees it.

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
    /// The client has read nothing for too long, or only a reset shows that a response was cut short: the socket is reset, and
    /// unsent data is dropped.
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

    /// Notes that a stream was opened; `head` is the size of its head in bytes.
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
