//! The timeouts of one connection. For each wait the clock is read once: the timer is rearmed when it fires, and a deadline
//! that moves away costs nothing.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::ConnectionSettings;
use crate::listen::connection::{Phase, Progress};
use crate::listen::handler::ClientProtocol;
use crate::words::timer::{LazyTimer, MinRate};

/// The reason why a connection waits. The numbers distinguish one wait from the next of its kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WaitReason {
    /// Nothing, or something with a bound of its own.
    Nothing,
    /// The first byte, or enough bytes to recognize the protocol.
    First,
    /// The rest of a head, after this many requests.
    Head(u32),
    /// The next request, after this many requests.
    Idle(u32),
    /// Anything from a proxy that asks, and has open requests (HTTP/2).
    Sign,
    /// The answer to a PING, after this many reads.
    Pong(u32),
    /// Room in the socket, after this many writes.
    Write(u32),
    /// Room in the socket, of a client that reads below the minimum rate.
    SlowReader,
    /// Our response, for a client that has closed its side and may still read: without a timeout. After this many
    /// requests.
    Answer(u32),
    /// Our response, for a client that closed its side within its request. After this many writes.
    Leaving(u32),
    /// The client to close, after the last response.
    Closing,
}

/// Watches over one connection.
#[derive(Debug)]
pub(super) struct Watchdog {
    header: Duration,
    keepalive: Duration,
    body_idle: Duration,
    /// The minimum rate at which the client must read.
    min_rate: MinRate,
    /// In bytes: what the client had read at the last check.
    taken: u64,
    closing: bool,
    waiting: WaitReason,
    /// How often a write to the full socket was tried.
    tries: u32,
    deadline: Instant,
    /// Whether a client with open requests that is silent for long must show that it is there.
    pings: bool,
    /// How often bytes had been read at the last check, and when a PING was sent.
    heard: u32,
    pinged: Option<u32>,
    /// The last wait for a request over HTTP/2, and its deadline. Frames that are no request do not restart it.
    silence: Option<(WaitReason, Instant)>,
    timer: LazyTimer,
}

impl Watchdog {
    pub(super) fn new(settings: &ConnectionSettings) -> Self {
        Self {
            pings: false,
            heard: 0,
            pinged: None,
            header: settings.header,
            keepalive: settings.keepalive,
            body_idle: settings.body_idle,
            min_rate: MinRate::new(settings.body_rate, settings.body_idle),
            taken: 0,
            closing: false,
            waiting: WaitReason::Nothing,
            tries: 0,
            deadline: Instant::now(),
            silence: None,
            timer: LazyTimer::default(),
        }
    }

    /// A watchdog for the connection of a proxy that asks, with PINGs: its calls may stay open as long as the
    /// application takes, and a proxy that hangs never ends them. Its kernel still confirms what is sent.
    pub(super) fn pinging(self) -> Self {
        Self { pings: true, ..self }
    }

    /// Called when the session is pending. Ready with the wait that took too long.
    pub(super) fn poll(
        &mut self,
        progress: &Progress,
        protocol: ClientProtocol,
        cx: &mut Context<'_>,
    ) -> Poll<WaitReason> {
        // Over HTTP/2 there may be requests in progress until the session has ended.
        let is_done = self.closing && (protocol == ClientProtocol::Http1 || progress.active() == 0);
        let waiting = if is_done { WaitReason::Closing } else { self.waiting(progress, protocol) };
        if waiting == self.waiting && !self.timer.has_fired() {
            return Poll::Pending;
        }
        if waiting != self.waiting {
            if self.min_rate.is_set() {
                self.update_rate(waiting, progress);
            }
            self.wait_for(waiting, progress, protocol);
        }
        if waiting == WaitReason::Nothing {
            return Poll::Pending;
        }
        ready!(self.timer.poll_at(self.deadline, cx));
        if waiting == WaitReason::Sign && self.heard != progress.reads() {
            // The clock is not read for each sign, so that the silence may last twice as long.
            self.heard = progress.reads();
            self.deadline = Instant::now() + self.keepalive;
            ready!(self.timer.poll_at(self.deadline, cx));
        }
        let is_slow = matches!(waiting, WaitReason::Write(_)) && self.is_slow(progress);
        Poll::Ready(if is_slow { WaitReason::SlowReader } else { waiting })
    }

    fn waiting(&self, progress: &Progress, protocol: ClientProtocol) -> WaitReason {
        match waiting(progress, protocol) {
            WaitReason::Nothing if self.pings && protocol == ClientProtocol::Http2 => match self.pinged {
                Some(reads) if reads == progress.reads() => WaitReason::Pong(reads),
                _ => WaitReason::Sign,
            },
            waiting => waiting,
        }
    }

    /// A PING is sent. Any bytes of the client show that it is there.
    pub(super) fn await_pong(&mut self, progress: &Progress) {
        self.pinged = Some(progress.reads());
    }

    /// The reason to wait changes: we wait for the client to read from now on, or no longer.
    fn update_rate(&mut self, waiting: WaitReason, progress: &Progress) {
        match (matches!(self.waiting, WaitReason::Write(_)), matches!(waiting, WaitReason::Write(_))) {
            (false, true) => self.min_rate.start_wait(Instant::now()),
            (true, false) => self.min_rate.end_wait(Instant::now()),
            _ => {}
        }
        self.note_taken(progress);
    }

    /// Checked only when the socket is tried anyway, and so a little late.
    fn is_slow(&mut self, progress: &Progress) -> bool {
        self.note_taken(progress);
        self.min_rate.is_too_slow(Instant::now())
    }

    fn note_taken(&mut self, progress: &Progress) {
        let taken = progress.written();
        self.min_rate.add_moved(taken.wrapping_sub(self.taken));
        self.taken = taken;
    }

    /// Whether a wait that took too long may go on for a while, with one more try to write.
    pub(super) fn may_retry_write(&mut self, waited_for: WaitReason) -> bool {
        if !matches!(waited_for, WaitReason::Write(_)) || self.tries == WRITE_TRIES {
            return false;
        }
        self.tries += 1;
        self.deadline = Instant::now() + self.body_idle / WRITE_TRIES;
        true
    }

    /// Lets a client wait longer for its response.
    pub(super) fn extend(&mut self) {
        self.deadline = Instant::now() + CHECK_INTERVAL;
    }

    /// Connections are being drained: waits for a request become shorter.
    pub(super) fn shorten(&mut self) {
        self.header = self.header.min(DRAIN_GRACE);
        self.keepalive = self.keepalive.min(DRAIN_GRACE);
        self.silence = None;
        self.waiting = WaitReason::Nothing;
    }

    /// The last response is written: the connection has a moment to close.
    pub(super) fn start_closing(&mut self) {
        self.closing = true;
    }

    fn wait_for(&mut self, waiting: WaitReason, progress: &Progress, protocol: ClientProtocol) {
        self.waiting = waiting;
        self.tries = 1;
        let timeout = match waiting {
            WaitReason::Nothing | WaitReason::SlowReader => return,
            WaitReason::First | WaitReason::Head(_) => self.header,
            WaitReason::Idle(_) => self.keepalive,
            WaitReason::Sign => {
                self.heard = progress.reads();
                self.keepalive
            }
            // As long as a body may make no progress: a proxy that is busy answers late.
            WaitReason::Pong(_) => self.body_idle,
            WaitReason::Write(_) => self.body_idle / WRITE_TRIES,
            WaitReason::Answer(_) => CHECK_INTERVAL,
            WaitReason::Leaving(_) => PARTIAL_REQUEST_GRACE,
            WaitReason::Closing => CLOSE_TIMEOUT,
        };
        self.deadline = Instant::now() + timeout;
        if matches!(waiting, WaitReason::First | WaitReason::Idle(_)) && protocol == ClientProtocol::Http2 {
            match self.silence {
                Some((before, end)) if before == waiting => self.deadline = end,
                _ => self.silence = Some((waiting, self.deadline)),
            }
        }
    }
}

fn waiting(progress: &Progress, protocol: ClientProtocol) -> WaitReason {
    if progress.write_blocked() {
        return WaitReason::Write(progress.writes());
    }
    match protocol {
        ClientProtocol::Http1 => match progress.phase() {
            Phase::Fresh => WaitReason::First,
            Phase::Head => WaitReason::Head(progress.served()),
            Phase::Busy if progress.abandoned() => WaitReason::Leaving(progress.writes()),
            Phase::Busy if progress.read_closed() => WaitReason::Answer(progress.served()),
            Phase::Busy | Phase::Tunnel => WaitReason::Nothing,
            Phase::Idle => WaitReason::Idle(progress.served()),
        },
        ClientProtocol::Http2 if progress.mid_frame() => WaitReason::Head(progress.served()),
        ClientProtocol::Http2 if progress.served() == 0 => WaitReason::First,
        ClientProtocol::Http2 if progress.active() == 0 => WaitReason::Idle(progress.served()),
        ClientProtocol::Http2 => WaitReason::Nothing,
    }
}

/// How often to check a client that has closed its side. It may wait for its response or have gone. Only a reset shows the
/// difference, and nothing wakes us for it.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A client that closed its side within its request may still read a response that comes soon.
const PARTIAL_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// A request that was sent before the drain has arrived by then.
pub(super) const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// How long a client may take to read the last response and close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The wait for a client to read is divided into this many parts. At the end of each the socket is tried.
const WRITE_TRIES: u32 = 4;
