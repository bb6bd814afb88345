//! Says when a connection should end: because it kept us waiting, or because all connections should.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::sync::futures::Notified;
use tracing::debug;

use super::Connection;
use super::Settings;
use super::connection::Phase;
use super::connections::Group;
use super::connections::Order;
use super::tapped::Protocol;
use super::watchdog::Waiting;
use super::watchdog::Watchdog;

/// Minds one connection.
pub(super) struct Minder<'a> {
    connection: &'a Connection,
    watchdog: Watchdog,
    orders: Orders<'a>,
    draining: Draining,
    /// The connection is taken apart, and put together again when the client speaks.
    resting: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Draining {
    No,
    /// Ordered, but a request may be on its way.
    Soon,
    Begun,
}

/// What a connection should do.
pub(super) enum Verdict {
    /// Finish what is under way, take nothing new.
    WindDown,
    /// Keep the socket and nothing else until the client speaks again (HTTP/1).
    Park,
    /// Go on with what is to be written: the socket may take some of it.
    TryOn,
    End,
}

impl<'a> Minder<'a> {
    pub(super) fn new(connection: &'a Connection, settings: &Settings) -> Self {
        Self {
            connection,
            watchdog: Watchdog::new(settings),
            orders: Orders::new(connection.group()),
            draining: Draining::No,
            resting: false,
        }
    }

    /// Whether the next answer is the last one.
    pub(super) fn is_draining(&self) -> bool {
        self.draining != Draining::No
    }

    /// Ready when a connection on which all is said has had its moment.
    pub(super) fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.watchdog.close();
        match self.orders.poll(cx) {
            Some(Order::Cut) => Poll::Ready(()),
            _ => self.watchdog.poll(&self.connection.progress, Protocol::Http1, cx).map(|_| ()),
        }
    }

    /// Ready when a connection between two requests (HTTP/1), taken apart, has waited long enough.
    pub(super) fn poll_resting(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.resting = true;
        let ended = loop {
            match self.poll(Protocol::Http1, cx) {
                // It is.
                Poll::Ready(Verdict::Park) => {}
                ended => break ended.map(|_| ()),
            }
        };
        self.resting = false;
        ended
    }

    /// Called when the connection's own future has come to rest.
    pub(super) fn poll(&mut self, protocol: Protocol, cx: &mut Context<'_>) -> Poll<Verdict> {
        let progress = &self.connection.progress;
        match self.orders.poll(cx) {
            Some(Order::Cut) => return Poll::Ready(Verdict::End),
            Some(order @ (Order::Retire | Order::Drain)) => {
                if self.draining == Draining::No {
                    self.draining = Draining::Soon;
                }
                if order == Order::Drain {
                    self.watchdog.hurry();
                }
            }
            Some(Order::Run) | None => {}
        }
        if self.draining == Draining::Soon
            && let Some(verdict) = self.begin_draining(protocol)
        {
            return Poll::Ready(verdict);
        }
        if protocol == Protocol::Http1 && progress.phase() == Phase::Idle && progress.read_closed() {
            // hyper was not told that the client had closed its side; it has its answer now.
            return Poll::Ready(Verdict::End);
        }
        match self.watchdog.poll(progress, protocol, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Waiting::Idle(_)) if protocol == Protocol::Http1 && self.watchdog.park() => {
                if progress.unread() {
                    // Answered before its body was through: whoever began anew would take the rest for a request.
                    return self.poll(protocol, cx);
                }
                Poll::Ready(Verdict::Park)
            }
            Poll::Ready(Waiting::Idle(_)) if protocol == Protocol::Http2 => {
                // HTTP/2 is told goodbye, so that a request just sent is known not to be answered.
                self.watchdog.close();
                Poll::Ready(Verdict::WindDown)
            }
            Poll::Ready(waited_for) if self.watchdog.may_insist(waited_for) => {
                progress.set_insists(true);
                Poll::Ready(Verdict::TryOn)
            }
            Poll::Ready(waited_for) => {
                debug!(peer = %self.connection.peer, ?waited_for, "connection timed out");
                progress.set_given_up(matches!(waited_for, Waiting::Write(_)));
                Poll::Ready(Verdict::End)
            }
        }
    }
}

impl Minder<'_> {
    /// How a connection in this state begins to drain; `None`: later.
    fn begin_draining(&mut self, protocol: Protocol) -> Option<Verdict> {
        if protocol == Protocol::Http2 {
            self.draining = Draining::Begun;
            // hyper waits for the client to confirm the goodbye; not every client does.
            self.watchdog.close();
            return Some(Verdict::WindDown);
        }
        let progress = &self.connection.progress;
        match progress.phase() {
            // Just opened, in the middle of a head, or answered already: with the next answer the client is told.
            Phase::Fresh | Phase::Head | Phase::Flushing => None,
            // hyper would close at once, and a request on its way would find nobody. It is to begin anew instead, for
            // one request only.
            Phase::Idle if self.resting || progress.unread() || progress.read_closed() => None,
            Phase::Idle => {
                self.watchdog.rest();
                Some(Verdict::Park)
            }
            Phase::Busy | Phase::Tunnel => {
                self.draining = Draining::Begun;
                Some(Verdict::WindDown)
            }
        }
    }
}

/// What a connection's group is told, without a lock on each poll.
struct Orders<'a> {
    group: &'a Group,
    ordered: Pin<Box<Notified<'a>>>,
    listening: bool,
    known: Order,
}

impl<'a> Orders<'a> {
    fn new(group: &'a Group) -> Self {
        Self { group, ordered: Box::pin(group.ordered.notified()), listening: false, known: Order::Run }
    }

    /// An order that is new.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<Order> {
        // A task's waker stays the same, so that it is enough to leave it here once.
        if !self.listening {
            self.listening = true;
            while self.ordered.as_mut().poll(cx).is_ready() {
                self.ordered.set(self.group.ordered.notified());
            }
        }
        let order = self.group.current_order();
        if order <= self.known {
            return None;
        }
        self.known = order;
        self.listening = false;
        self.ordered.set(self.group.ordered.notified());
        self.poll(cx).or(Some(order))
    }
}
