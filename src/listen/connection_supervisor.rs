//! Says when a connection should end: because it kept us waiting, or because all connections should.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::sync::futures::Notified;
use tracing::debug;

use super::Connection;
use super::Settings;
use super::connections::Group;
use super::connections::Order;
use super::recognize::Protocol;
use super::watchdog::Waiting;
use super::watchdog::Watchdog;

/// Minds one connection.
pub(super) struct ConnectionSupervisor<'a> {
    connection: &'a Connection,
    watchdog: Watchdog,
    orders: Orders<'a>,
}

/// What a connection should do.
pub(super) enum Verdict {
    /// Finish what is under way, take nothing new (HTTP/2).
    WindDown,
    /// Go on with what is to be written, for the socket may take some of it; or find that it takes nothing more.
    TryOn,
    End,
}

impl<'a> ConnectionSupervisor<'a> {
    pub(super) fn new(connection: &'a Connection, settings: &Settings) -> Self {
        Self { connection, watchdog: Watchdog::new(settings), orders: Orders::new(connection.group()) }
    }

    /// Ready when a connection on which all is said has had its moment.
    pub(super) fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.watchdog.close();
        match self.orders.poll(cx) {
            Some(Order::Cut) => Poll::Ready(()),
            _ => self.watchdog.poll(&self.connection.progress, Protocol::Http1, cx).map(|_| ()),
        }
    }

    /// Called when the connection's own future has come to rest.
    pub(super) fn poll(&mut self, protocol: Protocol, cx: &mut Context<'_>) -> Poll<Verdict> {
        let progress = &self.connection.progress;
        match self.orders.poll(cx) {
            Some(Order::Cut) => return Poll::Ready(Verdict::End),
            Some(order @ (Order::Retire | Order::Drain)) => {
                if order == Order::Drain {
                    self.watchdog.hurry();
                }
                // Over HTTP/1 the next answer says that it is the last one.
                if protocol == Protocol::Http2 {
                    // hyper waits for the client to confirm the goodbye; not every client does.
                    self.watchdog.close();
                    return Poll::Ready(Verdict::WindDown);
                }
            }
            Some(Order::Run) | None => {}
        }
        match self.watchdog.poll(progress, protocol, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Waiting::Idle(_)) if protocol == Protocol::Http2 => {
                // HTTP/2 is told goodbye, so that a request just sent is known not to be answered.
                self.watchdog.close();
                Poll::Ready(Verdict::WindDown)
            }
            Poll::Ready(Waiting::Answer(_)) => {
                self.watchdog.wait_on();
                progress.set_is_asked(true);
                Poll::Ready(Verdict::TryOn)
            }
            Poll::Ready(waited_for) if self.watchdog.may_insist(waited_for) => {
                progress.set_insists(true);
                Poll::Ready(Verdict::TryOn)
            }
            Poll::Ready(waited_for) => {
                debug!(peer = %self.connection.peer, ?waited_for, "connection timed out");
                progress.set_given_up(matches!(waited_for, Waiting::Write(_) | Waiting::SlowReader));
                Poll::Ready(Verdict::End)
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
