//! Ends connections that keep us waiting. Nothing is done per request but to read the clock once: the alarm is armed
//! again when it goes off, and a deadline that moved away costs nothing.

use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use tokio::time::Instant;

use super::Settings;
use super::connection::Phase;
use super::connection::Progress;
use super::recognize::Protocol;
use crate::timer::LazyTimer;
use crate::timer::MinRate;

/// What a connection waits for. The numbers tell one such wait from the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Waiting {
    /// Something that has a bound of its own.
    Nothing,
    /// A first byte, or enough to know the protocol.
    First,
    /// The rest of a head, after so many requests.
    Head(u32),
    /// A request, after so many.
    Idle(u32),
    /// Room to write, after so many writes.
    Write(u32),
    /// The same, and over a while too little was taken.
    SlowReader,
    /// Our answer, for a client that has closed its side and may read it: as long as it takes. After so many requests.
    Answer(u32),
    /// Our answer, for a client that closed its side too early. After so many writes.
    Leaving(u32),
    /// The client to close, now that all is said.
    Closing,
}

/// Watches over one connection.
#[derive(Debug)]
pub(super) struct Watchdog {
    header: Duration,
    keepalive: Duration,
    body_idle: Duration,
    /// At which the client takes what waits for it.
    pace: MinRate,
    /// So much it had taken when that was last looked at.
    taken: u64,
    closing: bool,
    waiting: Waiting,
    /// How often a socket that takes no more was tried in vain.
    tries: u32,
    deadline: Instant,
    /// The last wait for a request, and its end: what interrupts it and is no request does not begin it anew.
    silence: Option<(Waiting, Instant)>,
    timer: LazyTimer,
}

impl Watchdog {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            header: settings.header,
            keepalive: settings.keepalive,
            body_idle: settings.body_idle,
            pace: MinRate::new(settings.body_rate, settings.body_idle),
            taken: 0,
            closing: false,
            waiting: Waiting::Nothing,
            tries: 0,
            deadline: Instant::now(),
            silence: None,
            timer: LazyTimer::default(),
        }
    }

    /// Called when the connection's own future has come to rest; ready with what took too long.
    pub(super) fn poll(&mut self, progress: &Progress, protocol: Protocol, cx: &mut Context<'_>) -> Poll<Waiting> {
        let all_said = self.closing && progress.active() == 0;
        let waiting = if all_said { Waiting::Closing } else { waiting(progress, protocol) };
        if waiting == self.waiting && !self.timer.has_fired() {
            return Poll::Pending;
        }
        if waiting != self.waiting {
            if self.pace.is_set() {
                self.keep_pace(waiting, progress);
            }
            self.wait_for(waiting, protocol);
        }
        if waiting == Waiting::Nothing {
            return Poll::Pending;
        }
        ready!(self.timer.poll_at(self.deadline, cx));
        let is_slow = matches!(waiting, Waiting::Write(_)) && self.is_slow(progress);
        Poll::Ready(if is_slow { Waiting::SlowReader } else { waiting })
    }

    /// The wait changes: the client is waited for from now on, or no more. Between two writes it has not been judged yet.
    fn keep_pace(&mut self, waiting: Waiting, progress: &Progress) {
        match (matches!(self.waiting, Waiting::Write(_)), matches!(waiting, Waiting::Write(_))) {
            (false, true) => self.pace.start_wait(Instant::now()),
            (true, false) => self.pace.end_wait(Instant::now()),
            _ => {}
        }
        self.note_taken(progress);
    }

    /// Judged where the socket is tried anyway, and so a little late.
    fn is_slow(&mut self, progress: &Progress) -> bool {
        self.note_taken(progress);
        self.pace.is_too_slow(Instant::now())
    }

    fn note_taken(&mut self, progress: &Progress) {
        let taken = progress.written();
        self.pace.add_moved(taken.wrapping_sub(self.taken));
        self.taken = taken;
    }

    /// Whether a wait that took too long may go on for a while if the socket takes something after all.
    pub(super) fn may_insist(&mut self, waited_for: Waiting) -> bool {
        if !matches!(waited_for, Waiting::Write(_)) || self.tries == TRIES {
            return false;
        }
        self.tries += 1;
        self.deadline = Instant::now() + self.body_idle / TRIES;
        true
    }

    /// A client that waits for its answer may wait on.
    pub(super) fn wait_on(&mut self) {
        self.deadline = Instant::now() + LOOK_AGAIN;
    }

    /// Connections are being drained: those that have nothing to say yet are not waited for as long.
    pub(super) fn hurry(&mut self) {
        self.header = self.header.min(HURRY);
        self.keepalive = self.keepalive.min(HURRY);
        self.silence = None;
        self.waiting = Waiting::Nothing;
    }

    /// All is said: from here on the connection has a moment to end.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    fn wait_for(&mut self, waiting: Waiting, protocol: Protocol) {
        self.waiting = waiting;
        self.tries = 1;
        let patience = match waiting {
            Waiting::Nothing | Waiting::SlowReader => return,
            Waiting::First | Waiting::Head(_) => self.header,
            Waiting::Idle(_) => self.keepalive,
            Waiting::Write(_) => self.body_idle / TRIES,
            Waiting::Answer(_) => LOOK_AGAIN,
            Waiting::Leaving(_) => HALF_A_REQUEST,
            Waiting::Closing => LINGER,
        };
        self.deadline = Instant::now() + patience;
        if matches!(waiting, Waiting::First | Waiting::Idle(_)) && protocol == Protocol::Http2 {
            match self.silence {
                Some((before, end)) if before == waiting => self.deadline = end,
                _ => self.silence = Some((waiting, self.deadline)),
            }
        }
    }
}

fn waiting(progress: &Progress, protocol: Protocol) -> Waiting {
    if progress.write_blocked() {
        return Waiting::Write(progress.writes());
    }
    match protocol {
        Protocol::Http1 => match progress.phase() {
            Phase::Fresh => Waiting::First,
            Phase::Head => Waiting::Head(progress.served()),
            Phase::Busy if progress.abandoned() => Waiting::Leaving(progress.writes()),
            Phase::Busy if progress.read_closed() => Waiting::Answer(progress.served()),
            Phase::Busy | Phase::Tunnel => Waiting::Nothing,
            Phase::Idle => Waiting::Idle(progress.served()),
        },
        Protocol::Http2 if progress.mid_frame() => Waiting::Head(progress.served()),
        Protocol::Http2 if progress.served() == 0 => Waiting::First,
        Protocol::Http2 if progress.active() == 0 => Waiting::Idle(progress.served()),
        Protocol::Http2 => Waiting::Nothing,
    }
}

/// A client that has closed its side waits for an answer, or has gone, which cannot be told before it resets the
/// connection. Nothing wakes us then: so often it is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A client that closed its side in the middle of its request may read what is said to that, if that is said soon.
const HALF_A_REQUEST: Duration = Duration::from_secs(1);

/// A request sent before the draining has arrived by then.
pub(super) const HURRY: Duration = Duration::from_millis(500);

/// How long a client may take to close after the last answer, so that it gets to read it.
const LINGER: Duration = Duration::from_secs(2);

/// Into so many parts the wait for a client to read is divided; at the end of each the socket is tried.
const TRIES: u32 = 4;
