//! Counts different values of one key exactly: the last time of each value, shared by all rates of a limit.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Rate, Rates, Standing, Standings};
use crate::rules::limit::state::span;

/// The values seen last, each with the moment of its last count, in the order of these moments.
///
/// A rate of N per W has room when the values in its window and the new ones are at most N together. A value that is in
/// the window already costs nothing. One value more than the largest count is kept, which shows that more values were
/// counted than had room. Then not even a value of the window passes.
///
/// The search is linear, because there are never more than a few thousand values.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Distinct {
    seen: Vec<SeenValue>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct SeenValue {
    value: u64,
    at: u64,
}

impl Distinct {
    /// When these values have room under every rate; `None`: now. More values than a rate counts never have room. Then
    /// the answer is a moment at which they have no room either.
    pub(super) fn opens_at(&self, rates: &Rates, items: &[u64], now: u64) -> Option<u64> {
        let now = self.not_before_latest(now);
        let asked = different(items);
        let opens = |rate: &Rate| {
            let (most, window) = (rate.count.get() as usize, rate.window());
            let Some(room) = most.checked_sub(asked.len()) else { return now + window };
            let mut others = self.within(window, now).iter().rev().filter(|seen| !asked.contains(&seen.value));
            // When the first value beyond the room has left the window, all older ones have left it too.
            others.nth(room).map_or(now, |seen| seen.at + window)
        };
        rates.iter().map(opens).max().filter(|opens| *opens > now)
    }

    /// The values that are in the window of no rate.
    pub(super) fn unseen(&self, rates: &Rates, items: &[u64], now: u64) -> SmallVec<[u64; 1]> {
        let known = self.within(longest(rates), self.not_before_latest(now));
        let mut unseen = different(items);
        unseen.retain(|item| known.iter().all(|seen| seen.value != *item));
        unseen
    }

    /// Counts these values, whether or not there is room. Answers the moment of the count.
    pub(super) fn charge(&mut self, rates: &Rates, items: &[u64], now: u64) -> u64 {
        let now = self.not_before_latest(now);
        self.seen.retain(|seen| !items.contains(&seen.value));
        self.seen.extend(different(items).into_iter().map(|value| SeenValue { value, at: now }));
        let surplus = self.seen.len().saturating_sub(rates.largest_count().get() as usize + 1);
        self.seen.drain(..surplus);
        now
    }

    /// Removes the values that were not counted again since `moment`.
    pub(super) fn take_back(&mut self, items: &[u64], moment: u64) {
        self.seen.retain(|seen| seen.at != moment || !items.contains(&seen.value));
    }

    pub(super) fn standings(&self, rates: &Rates, now: u64) -> Standings {
        let at = self.not_before_latest(now);
        let standing = |rate: &Rate| {
            let within = self.within(rate.window(), at);
            let used = within.len().min(rate.count.get() as usize);
            let leaves = within.get(within.len() - used).map_or(now, |oldest| oldest.at + rate.window());
            Standing { remaining: u64::from(rate.count.get()) - used as u64, reset: span(now, leaves) }
        };
        rates.iter().map(standing).collect()
    }

    /// From when on this equals a fresh state.
    pub(super) fn expires_at(&self, rates: &Rates) -> u64 {
        self.seen.last().map_or(0, |latest| latest.at + longest(rates))
    }

    /// The values in the window of this length that ends now.
    fn within(&self, window: u64, now: u64) -> &[SeenValue] {
        let left = self.seen.partition_point(|seen| seen.at + window <= now);
        &self.seen[left..]
    }

    /// A clock that stands still or steps back must not shorten a window, so time continues from the last value.
    fn not_before_latest(&self, now: u64) -> u64 {
        self.seen.last().map_or(now, |latest| latest.at.max(now))
    }
}

/// Each value once.
fn different(items: &[u64]) -> SmallVec<[u64; 1]> {
    let mut different: SmallVec<[u64; 1]> = SmallVec::new();
    for item in items {
        if !different.contains(item) {
            different.push(*item);
        }
    }
    different
}

fn longest(rates: &Rates) -> u64 {
    rates.iter().map(Rate::window).max().unwrap_or_default()
}
