//! Which key is evicted when there is no room: an expired one, else the one with the most budget left, never one that
//! is refusing requests.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::shard::{Shard, ShardFull};
use crate::rules::decision::Batch;
use crate::rules::limit::{Rule, Standings, State};
use crate::store::memory::shard::Seconds;
use crate::words::clock::Timestamp;

/// How many keys are looked at to choose one to evict, half of them in turn and half at random. Even so few find one of
/// the loosest tenth four times in five.
const LOOKS: usize = 16;

/// More than one key is looked at for each key that is admitted, or the removal of expired keys would fall behind.
const SWEPT_FOR_EACH: usize = 2;

impl Shard {
    /// The place of a key to evict: an expired one, or else, of the keys looked at, the one with the most of its budget
    /// left.
    pub(super) fn find_victim(&mut self, batch: &Batch<'_>, now: Timestamp) -> Result<usize, ShardFull> {
        let second = Seconds::before(now);
        if second < self.full_until {
            return Err(ShardFull::until(self.full_until, now));
        }
        self.choose_victim(batch, second).map_or_else(|| self.search_all(batch, now), Ok)
    }

    /// The same among the keys looked at, if one of them may be evicted.
    pub(super) fn choose_victim(&mut self, batch: &Batch<'_>, second: Seconds) -> Option<usize> {
        let len = self.entries.len();
        let mut best: Option<(u32, usize)> = None;
        for look in 0..LOOKS {
            let place = if look % 2 == 0 { self.advance() } else { fastrand::usize(..len.max(1)) };
            let Some(entry) = self.entries.get(place) else { continue };
            if entry.rank.must_stay(second) || entry.is_in(batch) {
                continue;
            }
            if entry.expires <= second {
                return Some(place);
            }
            if best.is_none_or(|(most, _)| entry.rank.left > most) {
                best = Some((entry.rank.left, place));
            }
        }
        best.map(|(_, place)| place)
    }

    /// Searches all keys for one that may be evicted. If there is none, no search is made again before the first key
    /// stops refusing, or a key counts less than before.
    fn search_all(&mut self, batch: &Batch<'_>, now: Timestamp) -> Result<usize, ShardFull> {
        let second = Seconds::before(now);
        // In a flood nearly all keys are refusing, and the newest key is often the only one that may go. It is not
        // considered before: otherwise two keys that come in turn would evict each other, and no limit would hold them.
        if self.entries.get(self.newest).is_some_and(|entry| !entry.rank.must_stay(second) && !entry.is_in(batch)) {
            return Ok(self.newest);
        }
        let mut first_end = Seconds::NEVER;
        let mut spared = false;
        for _ in 0..self.entries.len() {
            let place = self.advance();
            let entry = &self.entries[place];
            if entry.rank.must_stay(second) {
                first_end = first_end.min(entry.rank.refuses_until);
            } else if entry.is_in(batch) {
                spared = true;
            } else {
                return Ok(place);
            }
        }
        if !spared {
            self.full_until = first_end;
        }
        Err(ShardFull::until(first_end, now))
    }

    /// Removes expired keys among the next few, for each of the `admitted` ones. So memory follows the number of keys
    /// that matter, without a walk over all of them.
    pub(super) fn remove_expired(&mut self, now: Timestamp, admitted: usize) {
        let second = Seconds::before(now);
        for _ in 0..SWEPT_FOR_EACH * admitted {
            let place = self.advance();
            if self.entries.get(place).is_some_and(|entry| entry.expires <= second) {
                self.remove(place);
            }
        }
    }

    /// The next place in turn.
    fn advance(&mut self) -> usize {
        let place = if self.cursor < self.entries.len() { self.cursor } else { 0 };
        self.cursor = place + 1;
        place
    }
}

impl ShardFull {
    /// The client is to come back when the first key stops refusing, or in a second where that is not known.
    fn until(end: Seconds, now: Timestamp) -> Self {
        let wait = if end == Seconds::NEVER { Duration::ZERO } else { end.begins().since(now) };
        Self { retry_after: wait.max(Duration::from_secs(1)) }
    }
}

// How much would be lost if a key were evicted.

/// The whole budget.
const WHOLE: u32 = 1 << 16;

/// How much would be lost if a key were evicted, as of its last charge.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct EvictionRank {
    /// Until when the key refuses requests: long ago if it refuses none, [`Seconds::NEVER`] while requests are in
    /// flight.
    pub(super) refuses_until: Seconds,
    /// The share of the budget that is left, or will be when it next has room, in 65536ths.
    pub(super) left: u32,
}

impl EvictionRank {
    pub(super) fn of(state: &State, rule: &Rule, standings: &Standings, now: Timestamp) -> Self {
        let (rates, cost) = match rule {
            Rule::Rates { rates, cost, .. } => (rates, u64::from(cost.get())),
            Rule::Distinct(rates) => (rates, 1),
            Rule::Concurrent(_) => {
                let in_flight = Self { refuses_until: Seconds::NEVER, left: 0 };
                return if state.in_flight() > 0 { in_flight } else { Self::default() };
            }
        };
        let exhausted = standings.iter().any(|standing| standing.remaining < cost);
        let opens = match rule {
            _ if !exhausted => None,
            // A limit on distinct values refuses only values that it has not seen.
            Rule::Distinct(_) => standings.iter().filter(|all| all.remaining == 0).map(|all| now + all.reset).max(),
            _ => state.opens_at(rule, &[], now),
        };
        let shares = standings.iter().zip(rates).map(|(standing, rate)| {
            // A burst may leave more than the count.
            let left = standing.remaining.max(cost).min(u64::from(u32::MAX));
            left * u64::from(WHOLE) / u64::from(rate.count.get())
        });
        let left = shares.min().and_then(|share| u32::try_from(share).ok()).unwrap_or(WHOLE);
        Self { refuses_until: opens.map(end_of_refusal).unwrap_or_default(), left }
    }

    pub(super) fn refuse_until(&mut self, opens: Timestamp) {
        if self.refuses_until != Seconds::NEVER {
            self.refuses_until = end_of_refusal(opens);
        }
    }

    /// Whether the key must stay: it refuses requests now, or has requests in flight.
    pub(super) fn must_stay(self, now: Seconds) -> bool {
        self.refuses_until > now
    }
}

impl Default for EvictionRank {
    /// Of a key that has counted nothing.
    fn default() -> Self {
        Self { refuses_until: Seconds::default(), left: WHOLE }
    }
}

/// The end of a refusal. The last second of all is kept for requests in flight.
fn end_of_refusal(opens: Timestamp) -> Seconds {
    Seconds::after(opens).min(Seconds(u32::MAX - 1))
}
