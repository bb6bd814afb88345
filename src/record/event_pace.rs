//! How many events of requests the stream takes in a second.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::clock::Timestamp;

/// A flood has tens of thousands of denials in a second, more than anybody reads. What is beyond the first ones of a second
/// costs its request a count, however many subscribers there are.
#[derive(Debug)]
pub(super) struct EventPace {
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

/// Costs well below a hundredth of a core with ten subscribers.
pub(super) const MOST_PER_SECOND: usize = 500;

const SECOND: Duration = Duration::from_secs(1);

impl EventPace {
    pub(super) fn new(clock: Clock) -> Self {
        let second = Mutex::new(Second { began: Timestamp::EPOCH, taken: 0 });
        Self { clock, full_until: AtomicU64::new(0), second, left_out: AtomicU64::new(0) }
    }

    /// Whether one more event is taken now. Counts one that is not.
    pub(super) fn take(&self) -> bool {
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
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

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
}
