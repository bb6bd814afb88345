//! Which key is evicted when there is no room: an expired one, else the one with the most budget left, never one that
//! is refusing requests.

use std::time::Duration;

use super::seconds::Seconds;
use super::shard::Shard;
use super::shard::ShardFull;
use crate::clock::Timestamp;
use crate::decision::Batch;

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

/// How many keys are looked at to choose one to evict, half of them in turn and half at random. Even so few find one of
/// the loosest tenth four times in five.
const LOOKS: usize = 16;

/// More than one key is looked at for each key that is admitted, or the removal of expired keys would fall behind.
const SWEPT_FOR_EACH: usize = 2;
