//! What every algorithm of rates can do with what it remembers.

use std::fmt::Debug;
use std::time::Duration;

use super::Algorithm;
use super::Rates;
use super::Standings;

/// What an algorithm remembers. Moments are microseconds since the epoch.
pub(super) trait RateMemory: Debug {
    /// When `cost` units more have room under every rate; `None` when that is now.
    fn opens_at(&self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> Option<u64>;

    /// Counts `cost` units under every rate, whether or not there is room, and answers when they are counted.
    fn charge(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> u64;

    /// Counts `cost` units no more that were counted at `moment`.
    fn take_back(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, moment: u64);

    fn standings(&self, rates: &Rates, algorithm: Algorithm, now: u64) -> Standings;

    /// From when on this says the same as nothing counted.
    fn expires_at(&self, rates: &Rates, algorithm: Algorithm) -> u64;
}

/// How long it is from `now` until `then`.
pub(super) fn span(now: u64, then: u64) -> Duration {
    Duration::from_micros(then.saturating_sub(now))
}
