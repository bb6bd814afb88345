//! One shard: a dense table of keys, and an index of their places.

use std::mem;
use std::time::Duration;

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

use crate::rules::decision::Batch;
use crate::rules::decision::batch::Charged;
use crate::rules::key::KeyHash;
use crate::rules::limit::{Rule, Standings, State};
use crate::store::memory::eviction::EvictionRank;
use crate::store::slab::Slab;
use crate::words::clock::Timestamp;

/// The index of fewer keys is not worth shrinking.
const FEW: usize = 1024;

const _: () = assert!(size_of::<KeyEntry>() == 56, "keys must stay small");

/// The keys of one shard, at most `bound` of them, not counting those taken over from another process.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) entries: Slab<KeyEntry>,
    /// Places in `entries`, by the lower half of the key.
    index: HashTable<u32>,
    bound: usize,
    /// Where the next look for an expired or evictable key begins.
    pub(super) cursor: usize,
    /// The place of the newest key.
    pub(super) newest: usize,
    /// Until then all keys are known to be refusing.
    pub(super) full_until: Seconds,
    /// How many new keys found no room so far: their requests are denied.
    pub(super) turned_away: u64,
    /// The counts have moved to another process, or are about to.
    pub(super) has_moved: bool,
    /// So many keys of another process are still to come.
    awaited: usize,
}

/// One key. Its rule stays with the policy, so the values that eviction needs are stored beside the state.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct KeyEntry {
    /// The two halves of the key: a `u128` would waste 8 bytes on alignment.
    key: [u64; 2],
    state: State,
    pub(super) expires: Seconds,
    pub(super) rank: EvictionRank,
}

/// All keys are refusing, so none may be evicted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ShardFull {
    pub(super) retry_after: Duration,
}

impl Shard {
    pub(super) fn new(bound: usize) -> Self {
        // Places are kept in 32 bits.
        let bound = bound.min(u32::MAX as usize);
        Self {
            entries: Slab::new(),
            index: HashTable::new(),
            bound,
            cursor: 0,
            newest: 0,
            full_until: Seconds::default(),
            turned_away: 0,
            has_moved: false,
            awaited: 0,
        }
    }

    /// Empties the shard and returns what was in it, for the caller to free.
    pub(super) fn take_all(&mut self) -> Self {
        let empty = Self { has_moved: self.has_moved, turned_away: self.turned_away, ..Self::new(self.bound) };
        mem::replace(self, empty)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    pub(super) fn bound(&self) -> usize {
        self.bound
    }

    /// The place of a key. Places stay valid until the next `remove_expired` or `release`.
    pub(super) fn find(&self, key: KeyHash) -> Option<usize> {
        let key = halves(key);
        let place = self.index.find(key[0], |place| self.entries[*place as usize].key == key);
        place.map(|place| *place as usize)
    }

    pub(super) fn state(&self, place: usize) -> &State {
        &self.entries[place].state
    }

    /// Begins to remember a new key. If there is no room, it takes the place of another key, but of none in `batch`,
    /// which are about to be charged.
    pub(super) fn admit(
        &mut self,
        key: KeyHash,
        rule: &Rule,
        batch: &Batch<'_>,
        now: Timestamp,
    ) -> Result<usize, ShardFull> {
        let entry = KeyEntry {
            key: halves(key),
            state: State::fresh(rule),
            expires: Seconds::default(),
            rank: EvictionRank::default(),
        };
        let victim = if self.entries.len() + self.awaited < self.bound {
            None
        } else if self.awaited > 0 {
            // Where none of the keys that are here may go, one of those that are to come will.
            self.choose_victim(batch, Seconds::before(now))
        } else {
            Some(self.find_victim(batch, now)?)
        };
        let place = if let Some(place) = victim {
            self.remove_from_index(place);
            self.entries[place] = entry;
            place
        } else {
            self.entries.push(entry);
            self.entries.len() - 1
        };
        self.add_to_index(place);
        self.newest = place;
        Ok(place)
    }

    /// Takes over a key with the counts of another process, also beyond the bound: its limits must still hold.
    pub(super) fn take_over(&mut self, entry: KeyEntry, now: Seconds) {
        self.awaited = self.awaited.saturating_sub(1);
        if entry.expires <= now {
            return;
        }
        self.full_until = Seconds::default();
        if let Some(place) = self.find(entry.key()) {
            self.entries[place] = entry;
        } else {
            self.entries.push(entry);
            self.add_to_index(self.entries.len() - 1);
        }
    }

    /// Adds the key at `place` to the index.
    fn add_to_index(&mut self, place: usize) {
        let Self { entries, index, .. } = self;
        let listed = u32::try_from(place).expect("a shard has fewer places than 32 bits can name");
        index.insert_unique(entries[place].key[0], listed, |place| entries[*place as usize].key[0]);
    }

    /// Counts a request, whether or not it passes. Returns the moment it counts from, and where the key stands then.
    pub(super) fn charge(
        &mut self,
        place: usize,
        rule: &Rule,
        items: &[u64],
        now: Timestamp,
    ) -> (Timestamp, Standings) {
        let moment = self.entries[place].state.charge(rule, items, now);
        (moment, self.update(place, rule, now))
    }

    /// Takes back what a request was charged. A key that counts nothing any more is removed.
    pub(super) fn take_back(&mut self, key: KeyHash, rule: &Rule, charged: &Charged, now: Timestamp) {
        let Some(place) = self.find(key) else { return };
        let state = &mut self.entries[place].state;
        state.take_back(rule, &charged.fresh, charged.moment);
        if state.expires_at(rule).is_some_and(|expires| expires <= now) {
            self.remove(place);
        } else {
            self.update(place, rule, now);
        }
    }

    /// Updates expiry and eviction rank of a key, and returns where it stands.
    fn update(&mut self, place: usize, rule: &Rule, now: Timestamp) -> Standings {
        let entry = &mut self.entries[place];
        entry.expires = entry.state.expires_at(rule).map_or(Seconds::NEVER, Seconds::after);
        let standings = entry.state.standings(rule, now);
        entry.rank = EvictionRank::of(&entry.state, rule, &standings, now);
        if !entry.rank.must_stay(Seconds::before(now)) {
            self.full_until = Seconds::default();
        }
        standings
    }

    /// Notes until when a key is refusing under the rule in force, and returns where it stands.
    pub(super) fn refuse(&mut self, place: usize, rule: &Rule, opens: Timestamp, now: Timestamp) -> Standings {
        let entry = &mut self.entries[place];
        entry.rank.refuse_until(opens);
        entry.state.standings(rule, now)
    }

    /// Gives back a slot. A key without slots is removed.
    pub(super) fn release(&mut self, key: KeyHash) {
        let Some(place) = self.find(key) else { return };
        let state = &mut self.entries[place].state;
        let in_flight = state.in_flight();
        state.release();
        if in_flight == 1 {
            self.remove(place);
        }
    }

    /// Resets a key. Slots of requests in flight stay taken.
    pub(super) fn reset(&mut self, key: KeyHash) {
        let Some(place) = self.find(key) else { return };
        if self.entries[place].state.in_flight() == 0 {
            self.remove(place);
        }
    }

    /// Removes a key and returns it.
    pub(super) fn take(&mut self, key: KeyHash) -> Option<KeyEntry> {
        let place = self.find(key)?;
        self.remove(place)
    }

    /// Removes the last key and returns it.
    pub(super) fn take_last(&mut self) -> Option<KeyEntry> {
        let last = self.entries.len().checked_sub(1)?;
        self.remove(last)
    }

    /// So many keys of another process are to come. The index gets room for them now: all shards fill alike, and would
    /// make room for more at the same time.
    pub(super) fn await_keys(&mut self, count: usize) {
        let Self { entries, index, .. } = self;
        index.reserve(count, |place| entries[*place as usize].key[0]);
        self.awaited = count;
    }

    /// Gives back memory of the index if it has become much too large; `false`: it has not.
    pub(super) fn shrink_index(&mut self) -> bool {
        let Self { entries, index, .. } = self;
        let is_too_large = index.capacity() > 4 * entries.len().max(FEW);
        if is_too_large {
            index.shrink_to(entries.len(), |place| entries[*place as usize].key[0]);
        }
        is_too_large
    }

    /// Removes the key at `place` and returns it; the last key moves there.
    pub(super) fn remove(&mut self, place: usize) -> Option<KeyEntry> {
        self.remove_from_index(place);
        let removed = self.entries.swap_remove(place);
        self.full_until = Seconds::default();
        if place == self.entries.len() {
            return removed;
        }
        let moved = self.entries.len();
        let hash = self.entries[place].key[0];
        if let Some(listed) = self.index.find_mut(hash, |listed| *listed as usize == moved) {
            *listed = u32::try_from(place).expect("a shard has fewer places than 32 bits can name");
        }
        removed
    }

    /// Removes the key at `place` from the index.
    fn remove_from_index(&mut self, place: usize) {
        let hash = self.entries[place].key[0];
        if let Ok(listed) = self.index.find_entry(hash, |listed| *listed as usize == place) {
            listed.remove();
        }
    }
}

impl KeyEntry {
    pub(super) fn key(&self) -> KeyHash {
        let [lower, upper] = self.key.map(u128::from);
        KeyHash(upper << 64 | lower)
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn is_in(&self, batch: &Batch<'_>) -> bool {
        batch.charges.iter().any(|charge| halves(charge.key) == self.key)
    }
}

/// The lower half first. The index uses the lower half, the choice of the shard the upper one.
#[expect(clippy::cast_possible_truncation, reason = "a half is what is wanted")]
fn halves(key: KeyHash) -> [u64; 2] {
    [key.0 as u64, (key.0 >> 64) as u64]
}

// Moments in whole seconds, in four bytes.

/// A moment in whole seconds since the epoch, until the year 2106: exact enough to choose which key is evicted.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct Seconds(pub(super) u32);

impl Seconds {
    pub(super) const NEVER: Self = Self(u32::MAX);

    /// The first whole second not before `moment`.
    pub(super) fn after(moment: Timestamp) -> Self {
        Self(u32::try_from(moment.as_micros().div_ceil(1_000_000)).unwrap_or(u32::MAX))
    }

    /// The last whole second not after `moment`.
    pub(super) fn before(moment: Timestamp) -> Self {
        Self(u32::try_from(moment.as_micros() / 1_000_000).unwrap_or(u32::MAX))
    }

    pub(super) fn begins(self) -> Timestamp {
        Timestamp::from_micros(u64::from(self.0) * 1_000_000)
    }
}
