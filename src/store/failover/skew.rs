//! Moments of Redis by the clock of this process, so that what is counted in both can be found again in both.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;

use crate::clock::Timestamp;

/// By how much the clock of this process is ahead of that of Redis, as far as it matters: clocks that differ by less than
/// [`TOLERATED`] are taken to be the same.
#[derive(Debug, Default)]
pub(super) struct Skew(AtomicI64);

impl Skew {
    /// Redis says that it was `there` just now, when it is `here`.
    pub(super) fn learn(&self, there: Timestamp, here: Timestamp) {
        let ahead = signed(here).saturating_sub(signed(there));
        if ahead.abs_diff(self.0.load(Ordering::Relaxed)) > TOLERATED {
            self.0.store(ahead, Ordering::Relaxed);
        }
    }

    pub(super) fn here(&self, there: Timestamp) -> Timestamp {
        let here = signed(there).saturating_add(self.0.load(Ordering::Relaxed));
        Timestamp::from_micros(u64::try_from(here).unwrap_or(0))
    }
}

fn signed(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_micros()).unwrap_or(i64::MAX)
}

/// In microseconds: longer than an answer takes.
const TOLERATED: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_same_moment_until_the_clocks_part() {
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        let skew = Skew::default();
        skew.learn(at(100), at(101));
        assert_eq!(skew.here(at(100)), at(100));
        skew.learn(at(100), at(3700));
        assert_eq!(skew.here(at(100)), at(3700));
        skew.learn(at(200), at(3801));
        assert_eq!(skew.here(at(100)), at(3700));
        skew.learn(at(5000), at(100));
        assert_eq!(skew.here(at(5001)), at(101));
        assert_eq!(skew.here(at(1)), Timestamp::EPOCH);
    }
}
