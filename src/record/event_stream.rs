//! The live stream of events, for clients of the admin API.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::time::Instant;
use tokio::time::sleep;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use super::Event;
use super::event::EventKind;
use super::event_pace::EventPace;
use crate::clock::Clock;

/// A subscriber that reads too slowly loses events. It never delays the gateway. Of a flood of denials the stream takes so
/// many a second that ten subscribers cost the flood next to nothing: the others are counted as lost.
#[derive(Debug)]
pub struct EventStream {
    sender: broadcast::Sender<Arc<StreamEvent>>,
    pace: Arc<EventPace>,
    /// The number of the latest event.
    latest: Mutex<u64>,
    permits: Arc<Semaphore>,
    closed: Mutex<CancellationToken>,
}

/// One subscriber.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<Arc<StreamEvent>>,
    pace: Arc<EventPace>,
    /// How many events this subscriber knows to be left out.
    left_out: u64,
    left_out_told: Instant,
    /// When it may read again.
    next_read: Instant,
    closed: CancellationToken,
    has_ended: bool,
    _permit: OwnedSemaphorePermit,
}

/// An event, written once for all subscribers.
#[derive(Debug, PartialEq)]
pub struct StreamEvent {
    /// Upwards from 1 since the process began.
    pub number: u64,
    pub kind: EventKind,
    /// One line.
    pub json: String,
}

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    Event(Arc<StreamEvent>),
    /// This many events came too fast for the stream or for this subscriber.
    Lost(u64),
}

/// Enough for every operator's dashboard. More is a mistake of some script.
pub const MAX_SUBSCRIBERS: usize = 64;

/// How many events a subscriber may fall behind.
const MAX_BEHIND: usize = 1024;

/// A subscriber gets what happens in this time together.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a subscriber may learn that events were left out.
const LEFT_OUT_EVERY: Duration = Duration::from_secs(1);

impl EventStream {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            sender: broadcast::Sender::new(MAX_BEHIND),
            pace: Arc::new(EventPace::new(clock)),
            latest: Mutex::new(0),
            permits: Arc::new(Semaphore::new(MAX_SUBSCRIBERS)),
            closed: Mutex::new(CancellationToken::new()),
        }
    }

    /// `None`: there are [`MAX_SUBSCRIBERS`] already. To be called within a runtime.
    pub fn subscribe(&self) -> Option<Subscription> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(Subscription {
            receiver: self.sender.subscribe(),
            pace: Arc::clone(&self.pace),
            left_out: self.pace.left_out(),
            left_out_told: Instant::now(),
            next_read: Instant::now(),
            closed: self.closed.lock().clone(),
            has_ended: false,
            _permit: permit,
        })
    }

    /// Ends all present subscriptions. New ones may follow.
    pub fn close_subscriptions(&self) {
        std::mem::take(&mut *self.closed.lock()).cancel();
    }

    pub(super) fn has_subscribers(&self) -> bool {
        // Each subscriber holds a permit. Counting receivers would take a lock.
        self.permits.available_permits() < MAX_SUBSCRIBERS
    }

    /// Whether the event of one more request is to be published. Counts one that is not, where anybody listens.
    pub(super) fn takes_request(&self) -> bool {
        self.has_subscribers() && self.pace.take()
    }

    pub(super) fn publish(&self, event: &Event) {
        if self.has_subscribers() {
            let (kind, json) = (event.kind, event.to_json());
            // Locked while sending, so that the numbers arrive in order.
            let mut latest = self.latest.lock();
            *latest += 1;
            // Fails where the last subscriber has just left.
            drop(self.sender.send(Arc::new(StreamEvent { number: *latest, kind, json })));
        }
    }
}

impl Subscription {
    /// What came since the last call, at least one item. `None`: the subscription was closed.
    pub async fn next(&mut self) -> Option<Vec<StreamItem>> {
        tokio::select! {
            () = sleep_until(self.next_read) => {}
            () = self.closed.cancelled() => {}
        }
        while !self.has_ended {
            let first = tokio::select! {
                biased;
                received = self.receiver.recv() => match received {
                    Ok(event) => Some(StreamItem::Event(event)),
                    Err(RecvError::Lagged(lost)) => Some(StreamItem::Lost(lost)),
                    Err(RecvError::Closed) => return None,
                },
                () = self.closed.cancelled() => None,
                () = sleep(LEFT_OUT_EVERY) => None,
            };
            // What came before the end is told.
            self.has_ended = self.closed.is_cancelled();
            let mut items: Vec<_> = first.into_iter().collect();
            while items.len() < MAX_BEHIND
                && let Some(item) = self.waiting()
            {
                items.push(item);
            }
            items.extend(self.newly_left_out());
            if !items.is_empty() {
                self.next_read = Instant::now() + PAUSE;
                return Some(items);
            }
        }
        None
    }

    /// The next item that is there already.
    fn waiting(&mut self) -> Option<StreamItem> {
        match self.receiver.try_recv() {
            Ok(event) => Some(StreamItem::Event(event)),
            Err(TryRecvError::Lagged(lost)) => Some(StreamItem::Lost(lost)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    fn newly_left_out(&mut self) -> Option<StreamItem> {
        let is_due = self.has_ended || self.left_out_told.elapsed() >= LEFT_OUT_EVERY;
        let left_out = self.pace.left_out();
        let lost = left_out - self.left_out;
        if lost == 0 || !is_due {
            return None;
        }
        (self.left_out, self.left_out_told) = (left_out, Instant::now());
        Some(StreamItem::Lost(lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::clock::Timestamp;

    fn stream() -> EventStream {
        EventStream::new(Clock::Manual(ManualClock::at(Timestamp::from_micros(7_000_000))))
    }

    fn numbers(items: &[StreamItem]) -> Vec<Result<u64, u64>> {
        let number = |item: &StreamItem| match item {
            StreamItem::Event(event) => Ok(event.number),
            StreamItem::Lost(lost) => Err(*lost),
        };
        items.iter().map(number).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_subscriber_learns_how_many_events_it_lost_and_goes_on_with_the_oldest_kept() {
        let stream = stream();
        let mut slow = stream.subscribe().unwrap();
        let event = Event::new(EventKind::Ban);
        for _ in 0..MAX_BEHIND + 10 {
            stream.publish(&event);
        }
        let items = slow.next().await.unwrap();
        assert_eq!(numbers(&items[..2]), [Err(10), Ok(11)]);
        stream.publish(&event);
        let rest = slow.next().await.unwrap();
        assert_eq!(numbers(&rest).last(), Some(&Ok(1035)));
        assert_eq!(items.len() + rest.len(), 1 + MAX_BEHIND + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_flood_a_subscriber_learns_how_many_events_were_left_out() {
        let stream = stream();
        assert!(!stream.takes_request(), "nobody listens");
        let mut subscription = stream.subscribe().unwrap();
        let event = Event::new(EventKind::Denial);
        let mut taken = 0;
        for _ in 0..10_000 {
            if stream.takes_request() {
                stream.publish(&event);
                taken += 1;
            }
        }
        assert_eq!(subscription.next().await.map(|items| items.len()), Some(taken));
        let began = Instant::now();
        assert_eq!(numbers(&subscription.next().await.unwrap()), [Err(10_000 - taken as u64)]);
        assert!(began.elapsed() <= LEFT_OUT_EVERY + PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_event_comes_at_once_and_the_next_ones_together() {
        let stream = stream();
        let mut subscription = stream.subscribe().unwrap();
        let event = Event::new(EventKind::Reload);
        let began = Instant::now();
        stream.publish(&event);
        assert_eq!(numbers(&subscription.next().await.unwrap()), [Ok(1)]);
        assert_eq!(began.elapsed(), Duration::ZERO);
        stream.publish(&event);
        stream.publish(&event);
        assert_eq!(numbers(&subscription.next().await.unwrap()), [Ok(2), Ok(3)]);
        assert!(began.elapsed() >= PAUSE);
        stream.publish(&event);
        stream.close_subscriptions();
        assert_eq!(numbers(&subscription.next().await.unwrap()), [Ok(4)]);
        assert_eq!(subscription.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn subscribers_are_bounded_and_one_that_leaves_makes_room() {
        let stream = stream();
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
