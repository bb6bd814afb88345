//! Different values of one key, exactly: when each was last seen, shared by all rates of a limit.

use serde::Deserialize;
use serde::Serialize;
use smallvec::SmallVec;

use super::Rate;
use super::Rates;
use super::Standing;
use super::Standings;
use super::memory::span;

/// The values seen last, each with the moment it was last counted at, in the order of these moments.
///
/// A rate of N per W has room when the values of its window and those asked for are at most N together: a value that is
/// in the window already costs nothing. One value more than the largest rate counts is kept, so that it is known where
/// more were counted than had room; then not even a value of the window passes.
///
/// Values are looked through one by one: there are never more than a few thousand.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Distinct {
    seen: Vec<Seen>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Seen {
    value: u64,
    at: u64,
}

impl Distinct {
    /// When these values have room under every rate; `None` when that is now. Values more than a rate counts never have:
    /// the moment answered never holds.
    pub(super) fn opens_at(&self, rates: &Rates, items: &[u64], now: u64) -> Option<u64> {
        let now = self.not_before_latest(now);
        let asked = different(items);
        let opens = |rate: &Rate| {
            let (most, window) = (rate.count.get() as usize, rate.window());
            let Some(room) = most.checked_sub(asked.len()) else { return now + window };
            let mut others = self.within(window, now).iter().rev().filter(|seen| !asked.contains(&seen.value));
            // Once the first one beyond those that have room has left, all before it have.
            others.nth(room).map_or(now, |seen| seen.at + window)
        };
        rates.iter().map(opens).max().filter(|opens| *opens > now)
    }

    /// Those of the values that are in the window of no rate.
    pub(super) fn unseen(&self, rates: &Rates, items: &[u64], now: u64) -> SmallVec<[u64; 1]> {
        let known = self.within(longest(rates), self.not_before_latest(now));
        let mut unseen = different(items);
        unseen.retain(|item| known.iter().all(|seen| seen.value != *item));
        unseen
    }

    /// Counts these values, whether or not there is room, and answers when.
    pub(super) fn charge(&mut self, rates: &Rates, items: &[u64], now: u64) -> u64 {
        let now = self.not_before_latest(now);
        self.seen.retain(|seen| !items.contains(&seen.value));
        self.seen.extend(different(items).into_iter().map(|value| Seen { value, at: now }));
        let surplus = self.seen.len().saturating_sub(rates.largest_count().get() as usize + 1);
        self.seen.drain(..surplus);
        now
    }

    /// Forgets these values where they were not counted again since `moment`.
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

    /// From when on this says the same as nothing counted.
    pub(super) fn expires_at(&self, rates: &Rates) -> u64 {
        self.seen.last().map_or(0, |latest| latest.at + longest(rates))
    }

    /// The values of the window of this length that ends now.
    fn within(&self, window: u64, now: u64) -> &[Seen] {
        let left = self.seen.partition_point(|seen| seen.at + window <= now);
        &self.seen[left..]
    }

    /// A clock that stands still or steps back shortens no window: time goes on from the last value.
    fn not_before_latest(&self, now: u64) -> u64 {
        self.seen.last().map_or(now, |latest| latest.at.max(now))
    }
}

/// Each of the values once.
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
