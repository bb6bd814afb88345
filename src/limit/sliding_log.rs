//! The exact algorithm: one log of all counted units, shared by all rates of a limit.

use serde::Deserialize;
use serde::Serialize;

use super::Algorithm;
use super::Rates;
use super::Standing;
use super::Standings;
use super::memory::RateMemory;
use super::memory::span;
use super::ring::RingView;
use super::ring::TimestampRing;

/// The moments at which units were charged: as many of the newest as the largest count.
///
/// A rate of N per W has room for c units when the (N-c+1)-th latest is absent or at least W old. So no window of
/// length W, wherever it begins, holds more than N.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct SlidingLog {
    units: TimestampRing,
}

impl SlidingLog {
    pub(super) fn new() -> Self {
        Self { units: TimestampRing::empty() }
    }
}

/// A clock that stands still or steps back must not shorten a window, so time continues from the last unit.
fn not_before_latest(units: RingView<'_>, now: u64) -> u64 {
    units.latest().map_or(now, |latest| latest.max(now))
}

impl RateMemory for SlidingLog {
    fn opens_at(&self, rates: &Rates, _algorithm: Algorithm, cost: u32, now: u64) -> Option<u64> {
        let units = self.units.view();
        let now = not_before_latest(units, now);
        let mut opens = now;
        for rate in rates {
            let open = match rate.count.get().checked_sub(cost) {
                Some(others) => units.nth_latest(others as usize + 1).map_or(now, |unit| unit + rate.window()),
                None => now + rate.window(),
            };
            opens = opens.max(open);
        }
        (opens > now).then_some(opens)
    }

    fn charge(&mut self, rates: &Rates, _algorithm: Algorithm, cost: u32, now: u64) -> u64 {
        let now = not_before_latest(self.units.view(), now);
        let begin = now.saturating_sub(longest(rates));
        self.units.push(now, cost as usize, rates.largest_count().get() as usize, begin);
        now
    }

    fn take_back(&mut self, _rates: &Rates, _algorithm: Algorithm, cost: u32, moment: u64) {
        self.units.remove(moment, cost as usize);
    }

    fn standings(&self, rates: &Rates, _algorithm: Algorithm, now: u64) -> Standings {
        let units = self.units.view();
        let at = not_before_latest(units, now);
        let mut standings = Standings::new();
        for rate in rates {
            let window = rate.window();
            let count = rate.count.get();
            let used = match at.checked_sub(window) {
                Some(begin) => units.later_than(begin, count as usize),
                None => units.len().min(count as usize),
            };
            let leaves = units.nth_latest(used).filter(|_| used > 0).map_or(now, |oldest| oldest + window);
            standings.push(Standing { remaining: u64::from(count) - used as u64, reset: span(now, leaves) });
        }
        standings
    }

    fn expires_at(&self, rates: &Rates, _algorithm: Algorithm) -> u64 {
        self.units.view().latest().map_or(0, |latest| latest + longest(rates))
    }
}

fn longest(rates: &Rates) -> u64 {
    rates.iter().map(super::Rate::window).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_newest_five_of_a_limit_of_five() {
        let rates: Rates = "1/second; 5/minute".parse().expect("two rates");
        let at = |minute: u64, second: u64| ((12 * 60 + minute) * 60 + second) * 1_000_000;
        let mut log = SlidingLog::new();
        for moment in [at(33, 35), at(33, 37), at(34, 14), at(34, 26), at(34, 28)] {
            log.charge(&rates, Algorithm::SlidingWindowLog, 1, moment);
        }
        let opens = |log: &SlidingLog, now| log.opens_at(&rates, Algorithm::SlidingWindowLog, 1, now);
        assert_eq!(opens(&log, at(34, 31)), Some(at(34, 35)));
        assert_eq!(opens(&log, at(34, 40)), None);
        log.charge(&rates, Algorithm::SlidingWindowLog, 1, at(34, 40));
        let newest_first: Vec<_> = (1..=6).map_while(|n| log.units.view().nth_latest(n)).collect();
        assert_eq!(newest_first, [at(34, 40), at(34, 28), at(34, 26), at(34, 14), at(33, 37)]);
    }
}
