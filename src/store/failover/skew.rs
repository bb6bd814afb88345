//! Converts moments of Redis to the clock of this process, so that a charge counts at the same moment in both.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;

use crate::clock::Timestamp;

/// How far the clock of this process is ahead of the clock of Redis. Changes of less than [`TOLERATED`] are ignored.
#[derive(Debug, Default)]
pub(super) struct ClockSkew(AtomicI64);

impl ClockSkew {
    /// The clock of Redis showed `there` when this one showed `here`.
    pub(super) fn learn(&self, there: Timestamp, here: Timestamp) {
        let ahead = signed(here).saturating_sub(signed(there));
        if ahead.abs_diff(self.0.load(Ordering::Relaxed)) > TOLERATED {
            self.0.store(ahead, Ordering::Relaxed);
        }
    }

    /// A moment of Redis by the clock of this process.
    pub(super) fn here(&self, there: Timestamp) -> Timestamp {
        let here = signed(there).saturating_add(self.0.load(Ordering::Relaxed));
        Timestamp::from_micros(u64::try_from(here).unwrap_or(0))
    }
}

fn signed(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_micros()).unwrap_or(i64::MAX)
}

/// In microseconds: longer than an answer is on its way.
const TOLERATED: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_same_moment_until_the_clocks_part() {
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        let skew = ClockSkew::default();
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
