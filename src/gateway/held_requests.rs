//! Requests that are held: each costs a timer and a place, no thread, and ends when its client leaves.

use std::future;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use tokio::time::sleep;

use crate::listen::Connection;

/// The requests that a process holds. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct HeldRequests(Arc<AtomicUsize>);

/// How a hold ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HoldEnd {
    /// After its whole span.
    Completed,
    /// At once: as many are held as may be.
    TooMany,
    /// Early: the process is about to end.
    ShuttingDown,
    /// Early: the client has closed its side, which is all that one does who leaves. Of who may be held for long nobody
    /// waits for an answer that way, and nobody is answered.
    ClientLeft,
}

impl HeldRequests {
    /// How many are held.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Holds a request of this connection for so long, unless `most` are held already.
    pub async fn hold(&self, connection: &Connection, span: Duration, most: usize) -> HoldEnd {
        let Some(_place) = self.enter(most) else { return HoldEnd::TooMany };
        let mut ending = pin!(connection.ending());
        let mut sleep = pin!(sleep(span));
        let mut has_asked = false;
        poll_fn(|cx| {
            if connection.has_left() {
                connection.abandon();
                return Poll::Ready(HoldEnd::ClientLeft);
            }
            if ending.as_mut().poll(cx).is_ready() {
                return Poll::Ready(HoldEnd::ShuttingDown);
            }
            ready!(sleep.as_mut().poll(cx));
            if !has_asked {
                // With something unread nobody has noticed. The connection looks, and then it is our turn again.
                has_asked = true;
                connection.ask_whether_it_left();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(HoldEnd::Completed)
        })
        .await
    }

    fn enter(&self, most: usize) -> Option<HeldRequest> {
        let entered =
            self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| (count < most).then_some(count + 1));
        entered.is_ok().then(|| HeldRequest(Arc::clone(&self.0)))
    }
}

/// Waits for the end of a connection whose client has left. An answer would be the reward for half a goodbye.
pub async fn never_answer<T>() -> T {
    future::pending().await
}

/// One request that is held.
#[derive(Debug)]
struct HeldRequest(Arc<AtomicUsize>);

impl Drop for HeldRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_held_than_may_be_and_a_place_comes_back() {
        let held_requests = HeldRequests::default();
        let first = held_requests.enter(2).expect("a place");
        let _second = held_requests.clone().enter(2).expect("a place");
        assert!(held_requests.enter(2).is_none());
        assert_eq!(held_requests.count(), 2);
        drop(first);
        assert!(held_requests.enter(2).is_some());
        assert!(held_requests.enter(0).is_none());
    }
}
