//! Requests that a limit holds: each costs a timer and no thread, and ends when its client leaves.

use std::future;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use tokio::time::Instant;
use tokio::time::sleep;

use crate::listen::Connection;

/// Counts the requests that a process holds. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct HeldRequests(Arc<AtomicUsize>);

/// How a hold ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HoldEnd {
    /// The span has passed.
    Completed,
    /// The request was not held, because `most` are held already.
    TooMany,
    /// The process is shutting down.
    ShuttingDown,
    /// The client has closed its side of the connection. A client that leaves does just this, so it gets no answer.
    ClientLeft,
}

impl HeldRequests {
    /// The number of held requests.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Holds a request of this connection for `span`, unless `most` are held already.
    pub async fn hold(&self, connection: &Connection, span: Duration, most: usize) -> HoldEnd {
        let Some(_held) = self.enter(most) else { return HoldEnd::TooMany };
        let mut ending = pin!(connection.ending());
        let end = Instant::now() + span;
        let mut check = pin!(sleep(span.min(BETWEEN_CHECKS)));
        let mut is_last = false;
        poll_fn(|cx| {
            if connection.has_left() {
                connection.abandon();
                return Poll::Ready(HoldEnd::ClientLeft);
            }
            if ending.as_mut().poll(cx).is_ready() {
                return Poll::Ready(HoldEnd::ShuttingDown);
            }
            ready!(check.as_mut().poll(cx));
            if is_last {
                return Poll::Ready(HoldEnd::Completed);
            }
            // While a part of the body is unread, a disconnect wakes nobody. The connection checks, then this is polled
            // again.
            connection.check_whether_client_left();
            cx.waker().wake_by_ref();
            let now = Instant::now();
            is_last = now >= end;
            if !is_last {
                check.as_mut().reset(end.min(now + BETWEEN_CHECKS));
            }
            Poll::Pending
        })
        .await
    }

    fn enter(&self, most: usize) -> Option<HeldRequest> {
        let entered =
            self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| (count < most).then_some(count + 1));
        entered.is_ok().then(|| HeldRequest(Arc::clone(&self.0)))
    }
}

/// Never returns: the connection of a client that has left drops this. An answer would reward a client that closes only
/// its side.
pub async fn never_answer<T>() -> T {
    future::pending().await
}

/// One held request. Dropping it makes room for another.
#[derive(Debug)]
struct HeldRequest(Arc<AtomicUsize>);

impl Drop for HeldRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How often a connection is checked whose client may have left behind unread bytes. A check is no system call.
const BETWEEN_CHECKS: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_held_than_may_be_and_an_ended_hold_makes_room() {
        let held_requests = HeldRequests::default();
        let first = held_requests.enter(2).expect("room");
        let _second = held_requests.clone().enter(2).expect("room");
        assert!(held_requests.enter(2).is_none());
        assert_eq!(held_requests.count(), 2);
        drop(first);
        assert!(held_requests.enter(2).is_some());
        assert!(held_requests.enter(0).is_none());
    }
}
