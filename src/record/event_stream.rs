//! The live stream of events, for clients of the admin API.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::Event;

/// A subscriber that reads too slowly loses events. It never delays the gateway.
#[derive(Debug)]
pub struct EventStream {
    sender: broadcast::Sender<(u64, Arc<Event>)>,
    /// The number of the latest event.
    latest: Mutex<u64>,
    permits: Arc<Semaphore>,
    closed: Mutex<CancellationToken>,
}

/// One subscriber.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<(u64, Arc<Event>)>,
    closed: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// Numbered upwards from 1 since the process began.
    Event(u64, Arc<Event>),
    /// The subscriber was too slow and lost this many events.
    Lost(u64),
}

/// Enough for every operator's dashboard. More is a mistake of some script.
pub const MAX_SUBSCRIBERS: usize = 64;

/// How many events a subscriber may fall behind.
const MAX_BEHIND: usize = 1024;

impl EventStream {
    pub(super) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(MAX_BEHIND),
            latest: Mutex::new(0),
            permits: Arc::new(Semaphore::new(MAX_SUBSCRIBERS)),
            closed: Mutex::new(CancellationToken::new()),
        }
    }

    /// `None`: there are [`MAX_SUBSCRIBERS`] already.
    pub fn subscribe(&self) -> Option<Subscription> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(Subscription { receiver: self.sender.subscribe(), closed: self.closed.lock().clone(), _permit: permit })
    }

    /// Ends all present subscriptions. New ones may follow.
    pub fn close_subscriptions(&self) {
        std::mem::take(&mut *self.closed.lock()).cancel();
    }

    pub(super) fn has_subscribers(&self) -> bool {
        // Each subscriber holds a permit. Counting receivers would take a lock.
        self.permits.available_permits() < MAX_SUBSCRIBERS
    }

    pub(super) fn publish(&self, event: &Arc<Event>) {
        if self.has_subscribers() {
            // Locked while sending, so that the numbers arrive in order.
            let mut latest = self.latest.lock();
            *latest += 1;
            // Fails where the last subscriber has just left.
            drop(self.sender.send((*latest, Arc::clone(event))));
        }
    }
}

impl Subscription {
    /// The next item. `None`: the subscription was closed.
    pub async fn next(&mut self) -> Option<StreamItem> {
        tokio::select! {
            received = self.receiver.recv() => match received {
                Ok((number, event)) => Some(StreamItem::Event(number, event)),
                Err(RecvError::Lagged(lost)) => Some(StreamItem::Lost(lost)),
                Err(RecvError::Closed) => None,
            },
            () = self.closed.cancelled() => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::event::EventKind;

    #[tokio::test]
    async fn a_slow_subscriber_learns_how_many_events_it_lost_and_goes_on_with_the_oldest_kept() {
        let stream = EventStream::new();
        let mut slow = stream.subscribe().unwrap();
        let event = Arc::new(Event::new(EventKind::Denial));
        for _ in 0..MAX_BEHIND + 10 {
            stream.publish(&event);
        }
        assert_eq!(slow.next().await, Some(StreamItem::Lost(10)));
        assert_eq!(slow.next().await, Some(StreamItem::Event(11, event)));
    }

    #[tokio::test]
    async fn subscribers_are_bounded_and_one_that_leaves_makes_room() {
        let stream = EventStream::new();
        let mut all: Vec<_> = (0..MAX_SUBSCRIBERS).map(|_| stream.subscribe().unwrap()).collect();
        assert!(stream.subscribe().is_none());
        all.pop();
        all.push(stream.subscribe().unwrap());
        stream.close_subscriptions();
        for mut subscription in all {
            assert_eq!(subscription.next().await, None);
        }
        assert!(!stream.has_subscribers());
    }
}
