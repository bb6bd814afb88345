//! What every algorithm of rates can do with its state of a key.

use std::fmt::Debug;
use std::time::Duration;

use super::Algorithm;
use super::Rates;
use super::Standings;

/// The state of an algorithm for one key. Moments are microseconds since the epoch.
pub(super) trait RateMemory: Debug {
    /// When `cost` more units have room under every rate; `None`: now.
    fn opens_at(&self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> Option<u64>;

    /// Counts `cost` units under every rate, whether or not there is room. Answers the moment of the count.
    fn charge(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> u64;

    /// Takes back `cost` units that were counted at `moment`.
    fn take_back(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, moment: u64);

    fn standings(&self, rates: &Rates, algorithm: Algorithm, now: u64) -> Standings;

    /// From when on this equals a fresh state.
    fn expires_at(&self, rates: &Rates, algorithm: Algorithm) -> u64;
}

/// The time from `now` until `then`.
pub(super) fn span(now: u64, then: u64) -> Duration {
    Duration::from_micros(then.saturating_sub(now))
}
