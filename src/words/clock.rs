//! Time as an input. Only this module reads the clocks of the system.

use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

/// A moment in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Timestamp(u64);

impl Timestamp {
    pub const EPOCH: Self = Self(0);

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// This many microseconds later, or earlier.
    #[must_use]
    pub const fn shifted(self, micros: i64) -> Self {
        Self(self.0.saturating_add_signed(micros))
    }

    /// The moment this long before; the epoch at the earliest.
    #[must_use]
    pub fn earlier_by(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        // In 64 bits, which hold half a million years.
        let micros = span.as_secs().saturating_mul(1_000_000).saturating_add(span.subsec_micros().into());
        Self(self.0.saturating_add(micros))
    }
}

/// A source of time: the system, or a clock that a test sets.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The wall clock at the start, continued by the monotonic clock: a correction of the system clock does not shift limits.
    System {
        epoch: Timestamp,
        started: Instant,
    },
    Manual(ManualClock),
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn system() -> Self {
        Self::System { epoch: wall(), started: Instant::now() }
    }

    /// Continues from the time that the clock of another process shows.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn from(shown: Timestamp) -> Self {
        Self::System { epoch: shown, started: Instant::now() }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System { epoch, started } => *epoch + Instant::now().duration_since(*started),
            Self::Manual(clock) => clock.now(),
        }
    }
}

impl Clock {
    /// How many microseconds the wall clock is ahead of this one, because it was corrected since, or the machine slept. A clock
    /// that a test sets is never corrected.
    pub fn correction(&self) -> i64 {
        match self {
            Self::System { .. } => wall().as_micros().wrapping_sub(self.now().as_micros()).cast_signed(),
            Self::Manual(_) => 0,
        }
    }
}

/// The wall clock, for people, log lines and dates, and for the times that tokens hold: their issuers go by it. No limit depends
/// on it.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH + since_epoch
}

/// A clock that a test sets. Clones share its time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    pub fn at(moment: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(moment.as_micros())))
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    pub fn set(&self, moment: Timestamp) {
        self.0.store(moment.as_micros(), Ordering::SeqCst);
    }

    pub fn advance(&self, span: Duration) {
        self.set(self.now() + span);
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, to the millisecond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_microsecond(micros) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_manual_clock_share_its_time() {
        let clock = ManualClock::at(Timestamp::from_micros(5));
        let shared = Clock::Manual(clock.clone());
        clock.advance(Duration::from_micros(7));
        assert_eq!(shared.now(), Timestamp::from_micros(12));
        clock.set(Timestamp::EPOCH);
        assert_eq!(shared.now(), Timestamp::EPOCH);
    }

    #[test]
    fn the_system_clock_shows_the_time_and_never_steps_back() {
        let clock = Clock::system();
        assert!(clock.now().since(wall()) < Duration::from_secs(60));
        assert!(wall().since(clock.now()) < Duration::from_secs(60));
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn sums_beyond_the_last_timestamp_are_the_last_timestamp() {
        let last = Timestamp::from_micros(u64::MAX);
        assert_eq!(last + Duration::MAX, last);
        assert_eq!(Timestamp::EPOCH.since(last), Duration::ZERO);
    }

    #[test]
    fn a_timestamp_is_displayed_as_a_date() {
        assert_eq!(Timestamp::from_micros(1_772_323_200_123_456).to_string(), "2026-03-01T00:00:00.123Z");
        assert_eq!(Timestamp::from_micros(u64::MAX).to_string(), "18446744073709551615us");
    }
}
