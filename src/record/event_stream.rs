//! The live stream of events, for clients of the admin API.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Event;
use super::event::EventKind;
use crate::words::clock::{Clock, Timestamp};

/// Enough for every operator's dashboard. More is a mistake of some script.
pub const MAX_SUBSCRIBERS: usize = 64;

/// How many events a subscriber may fall behind.
const MAX_BEHIND: usize = 1024;

/// A subscriber gets what happens in this time together.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a subscriber may learn that events were left out.
const LEFT_OUT_EVERY: Duration = Duration::from_secs(1);

/// A subscriber that reads too slowly loses events. It never delays the gateway. In a flood of denials the stream takes
/// only so many a second that ten subscribers cost almost nothing: the others are counted as lost.
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

/// An item that a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    Event(Arc<StreamEvent>),
    /// This many events came too fast for the stream or for this subscriber.
    Lost(u64),
}

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
            let (kind, json) = (event.kind, event.for_operators().to_string());
            // Locked while sending, so that the numbers arrive in order.
            let mut latest = self.latest.lock();
            *latest += 1;
            // Fails where the last subscriber has just left.
            drop(self.sender.send(Arc::new(StreamEvent { number: *latest, kind, json })));
        }
    }
}

impl Subscription {
    /// The items since the last call, at least one. `None`: the subscription was closed.
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
            // Events from before the end are still delivered.
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

// How many events of requests the stream takes in a second.

/// Costs well below a hundredth of a core with ten subscribers.
const MOST_PER_SECOND: usize = 500;

const SECOND: Duration = Duration::from_secs(1);

/// A flood has tens of thousands of denials in a second, more than anybody reads. After the first ones of a second, a
/// denial only costs a count, with any number of subscribers.
#[derive(Debug)]
struct EventPace {
    clock: Clock,
    /// Before this moment nothing more is taken, in microseconds since the Unix epoch.
    full_until: AtomicU64,
    second: Mutex<Second>,
    left_out: AtomicU64,
}

/// The latest second in which an event was taken.
#[derive(Debug)]
struct Second {
    began: Timestamp,
    taken: usize,
}

impl EventPace {
    fn new(clock: Clock) -> Self {
        let second = Mutex::new(Second { began: Timestamp::EPOCH, taken: 0 });
        Self { clock, full_until: AtomicU64::new(0), second, left_out: AtomicU64::new(0) }
    }

    /// Whether one more event is taken now. Counts one that is not.
    fn take(&self) -> bool {
        let now = self.clock.now();
        let is_taken = now.as_micros() >= self.full_until.load(Relaxed) && self.take_in_second(now);
        if !is_taken {
            self.left_out.fetch_add(1, Relaxed);
        }
        is_taken
    }

    fn take_in_second(&self, now: Timestamp) -> bool {
        let mut second = self.second.lock();
        if now.since(second.began) >= SECOND {
            *second = Second { began: now, taken: 0 };
        }
        if second.taken == MOST_PER_SECOND {
            return false;
        }
        second.taken += 1;
        if second.taken == MOST_PER_SECOND {
            self.full_until.store((second.began + SECOND).as_micros(), Relaxed);
        }
        true
    }

    /// How many events were not taken since the process began.
    fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }
}

// The newest bans, unbans, reloads and sign-ins after failures, for the list of recent events.

/// A few hundred bytes each.
pub const MOST_BANS: usize = 500;

pub const MOST_RELOADS: usize = 100;

pub const MOST_SIGN_INS: usize = 200;

/// The end of a ban that another gateway has set shifts by the way of its message.
const LONGEST_DELIVERY: Duration = Duration::from_secs(1);

/// Keeps a number of each kind, so that a flood of bans does not push out a reload. Denials and delays are not kept
/// here: the counts by key and the kept requests have them.
#[derive(Debug, Default)]
pub struct PastEvents {
    /// The oldest first.
    bans: Mutex<VecDeque<Arc<Event>>>,
    reloads: Mutex<VecDeque<Arc<Event>>>,
    sign_ins: Mutex<VecDeque<Arc<Event>>>,
}

impl PastEvents {
    /// Keeps an event, unless the same event of a ban is kept already: a ban that several gateways share may arrive
    /// twice.
    pub(super) fn keep(&self, event: &Arc<Event>) {
        match event.kind {
            EventKind::Ban | EventKind::Unban => {
                let mut bans = self.bans.lock();
                let known = bans.iter().rev().find(|known| known.ban == event.ban);
                if known.is_none_or(|known| !tells_the_same(known, event)) {
                    push(&mut bans, event, MOST_BANS);
                }
            }
            EventKind::Reload => push(&mut self.reloads.lock(), event, MOST_RELOADS),
            EventKind::SignedInAfterFailures => push(&mut self.sign_ins.lock(), event, MOST_SIGN_INS),
            EventKind::Denial | EventKind::Delay => {}
        }
    }

    /// Who signed in after failures, the oldest first.
    pub fn sign_ins(&self) -> Vec<Arc<Event>> {
        self.sign_ins.lock().iter().map(Arc::clone).collect()
    }

    /// The kept events since that moment, the newest first.
    pub fn since(&self, moment: Timestamp) -> Vec<Arc<Event>> {
        let kept = [&self.bans, &self.reloads, &self.sign_ins];
        let mut events: Vec<_> =
            kept.iter().flat_map(|kept| kept.lock().iter().map(Arc::clone).collect::<Vec<_>>()).collect();
        events.retain(|event| event.time >= moment);
        events.sort_by_key(|event| std::cmp::Reverse(event.time));
        events
    }
}

/// Two events of one ban.
fn tells_the_same(one: &Event, other: &Event) -> bool {
    let is_same_end = match (one.until, other.until) {
        (Some(one), Some(other)) => one.since(other).max(other.since(one)) < LONGEST_DELIVERY,
        _ => one.until == other.until,
    };
    one.kind == other.kind && is_same_end
}

fn push(kept: &mut VecDeque<Arc<Event>>, event: &Arc<Event>, most: usize) {
    if kept.len() == most {
        kept.pop_front();
    }
    kept.push_back(Arc::clone(event));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::clock::{ManualClock, Timestamp};

    #[test]
    fn no_second_has_more_than_its_events_and_the_others_are_counted() {
        let clock = ManualClock::at(Timestamp::from_micros(7_000_000));
        let pace = EventPace::new(Clock::Manual(clock.clone()));
        let taken = || (0..2 * MOST_PER_SECOND).filter(|_| pace.take()).count();
        assert_eq!((taken(), pace.left_out()), (MOST_PER_SECOND, MOST_PER_SECOND as u64));
        clock.advance(Duration::from_micros(999_999));
        assert!(!pace.take());
        clock.advance(Duration::from_micros(1));
        assert_eq!((taken(), pace.left_out()), (MOST_PER_SECOND, 2 * MOST_PER_SECOND as u64 + 1));
    }

    #[test]
    fn threads_together_take_no_more_than_one() {
        let pace = EventPace::new(Clock::Manual(ManualClock::at(Timestamp::from_micros(7_000_000))));
        let taken: usize = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| (0..MOST_PER_SECOND).filter(|_| pace.take()).count()));
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((taken, pace.left_out()), (MOST_PER_SECOND, 3 * MOST_PER_SECOND as u64));
    }

    fn event(kind: EventKind, ban: usize, second: u64) -> Arc<Event> {
        let time = Timestamp::from_micros(second * 1_000_000);
        let event = Event { time, ban: Some(ban.to_string().into()), ..Event::new(kind) };
        Arc::new(if kind == EventKind::Ban { event.lasting(Duration::from_secs(60)) } else { event })
    }

    #[test]
    fn many_bans_push_out_the_oldest_bans_and_no_reload() {
        let past = PastEvents::default();
        past.keep(&event(EventKind::Reload, 0, 1));
        for ban in 0..MOST_BANS + 10 {
            past.keep(&event(EventKind::Ban, ban, 2 + ban as u64));
        }
        let all = past.since(Timestamp::EPOCH);
        assert_eq!(all.len(), MOST_BANS + 1);
        assert_eq!(all[0].ban.as_deref(), Some("509"));
        assert_eq!(all[MOST_BANS - 1].ban.as_deref(), Some("10"));
        assert_eq!(all[MOST_BANS].kind, EventKind::Reload);
        assert_eq!(past.since(Timestamp::from_micros(510_000_000)).len(), 2);
    }

    #[test]
    fn what_is_known_of_a_ban_is_kept_once() {
        let past = PastEvents::default();
        let [first, again] = [1, 100].map(|second| event(EventKind::Ban, 7, second));
        let echo = Arc::new(Event { time: first.time + Duration::from_millis(900), ..Event::clone(&first) });
        for event in [&first, &echo, &event(EventKind::Unban, 7, 3), &event(EventKind::Unban, 7, 4), &again] {
            past.keep(event);
        }
        let kinds: Vec<_> = past.since(Timestamp::EPOCH).iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Ban, EventKind::Unban, EventKind::Ban]);
    }

    #[test]
    fn denials_are_told_elsewhere() {
        let past = PastEvents::default();
        past.keep(&event(EventKind::Denial, 1, 1));
        past.keep(&event(EventKind::Delay, 1, 1));
        assert!(past.since(Timestamp::EPOCH).is_empty());
    }

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
