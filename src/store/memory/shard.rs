//! One shard: keys in a dense table, found through an index of their places.

use std::mem;
use std::time::Duration;

use hashbrown::HashTable;
use serde::Deserialize;
use serde::Serialize;

use super::forget::Hold;
use super::slab::Slab;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::batch::Charged;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::limit::Standings;
use crate::limit::State;

/// The keys of one shard, never more than its bound, but for those of another process that were taken in.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) entries: Slab<Entry>,
    /// Places in `entries`, by the lower half of the key.
    index: HashTable<u32>,
    bound: usize,
    /// Where the next look for something to forget begins.
    pub(super) cursor: usize,
    /// Where the last new key went.
    pub(super) newest: usize,
    /// Until then every key is known to be refusing.
    pub(super) full_until: Seconds,
    /// Another process counts its keys from here on, or is about to.
    pub(super) has_moved: bool,
}

/// One key. The rule it is counted by stays with the policy, so what forgetting needs to know is noted beside it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Entry {
    /// The two halves of the key: a `u128` would waste 8 bytes on alignment.
    key: [u64; 2],
    state: State,
    pub(super) expires: Seconds,
    pub(super) hold: Hold,
}

/// A moment in whole seconds since the epoch, until the year 2106: enough to choose what to forget.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct Seconds(pub(super) u32);

/// Every key is being refused, and none may be forgotten.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Full {
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
            has_moved: false,
        }
    }

    /// Empties it, for the caller to free what was there.
    pub(super) fn take_all(&mut self) -> Self {
        let empty = Self { has_moved: self.has_moved, ..Self::new(self.bound) };
        mem::replace(self, empty)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    pub(super) fn bound(&self) -> usize {
        self.bound
    }

    /// Where a key is; places hold until the next `sweep` or `release`.
    pub(super) fn find(&self, key: KeyHash) -> Option<usize> {
        let key = halves(key);
        let place = self.index.find(key[0], |place| self.entries[*place as usize].key == key);
        place.map(|place| *place as usize)
    }

    pub(super) fn state(&self, place: usize) -> &State {
        &self.entries[place].state
    }

    /// Begins to remember a key that is not known. When there is no room, another is forgotten for it, but none of
    /// those in `batch`, which are about to be charged.
    pub(super) fn admit(
        &mut self,
        key: KeyHash,
        rule: &Rule,
        batch: &Batch<'_>,
        now: Timestamp,
    ) -> Result<usize, Full> {
        let entry =
            Entry { key: halves(key), state: State::fresh(rule), expires: Seconds::default(), hold: Hold::default() };
        let place = if self.entries.len() < self.bound {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let place = self.victim(batch, now)?;
            self.unlist(place);
            self.entries[place] = entry;
            place
        };
        self.list(place);
        self.newest = place;
        Ok(place)
    }

    /// Knows a key as another process did, also beyond the bound: what was counted there binds.
    pub(super) fn take_in(&mut self, entry: Entry) {
        if let Some(place) = self.find(entry.key()) {
            self.entries[place] = entry;
        } else {
            self.entries.push(entry);
            self.list(self.entries.len() - 1);
        }
    }

    /// Puts the key at `place` into the index.
    fn list(&mut self, place: usize) {
        let Self { entries, index, .. } = self;
        let listed = u32::try_from(place).expect("a shard has fewer places than 32 bits can name");
        index.insert_unique(entries[place].key[0], listed, |place| entries[*place as usize].key[0]);
    }

    /// Counts a request, whether or not it passes, and answers when, and where the key stands then.
    pub(super) fn charge(
        &mut self,
        place: usize,
        rule: &Rule,
        items: &[u64],
        now: Timestamp,
    ) -> (Timestamp, Standings) {
        let moment = self.entries[place].state.charge(rule, items, now);
        (moment, self.note(place, rule, now))
    }

    /// Counts a request no more. A key that counts nothing any more is forgotten.
    pub(super) fn take_back(&mut self, key: KeyHash, rule: &Rule, charged: &Charged, now: Timestamp) {
        let Some(place) = self.find(key) else { return };
        let state = &mut self.entries[place].state;
        state.take_back(rule, &charged.fresh, charged.moment);
        if state.expires_at(rule).is_some_and(|expires| expires <= now) {
            self.forget(place);
        } else {
            self.note(place, rule, now);
        }
    }

    /// Notes how a key binds now, and answers where it stands.
    fn note(&mut self, place: usize, rule: &Rule, now: Timestamp) -> Standings {
        let entry = &mut self.entries[place];
        entry.expires = entry.state.expires_at(rule).map_or(Seconds::NEVER, Seconds::after);
        let standings = entry.state.standings(rule, now);
        entry.hold = Hold::of(&entry.state, rule, &standings, now);
        if !entry.hold.binds(Seconds::before(now)) {
            self.full_until = Seconds::default();
        }
        standings
    }

    /// Notes that a key is refusing under the rule that holds now, and answers where it stands.
    pub(super) fn refuse(&mut self, place: usize, rule: &Rule, opens: Timestamp, now: Timestamp) -> Standings {
        let entry = &mut self.entries[place];
        entry.hold.refuse_until(opens);
        entry.state.standings(rule, now)
    }

    /// Gives back a slot. A key that holds none has nothing left to remember.
    pub(super) fn release(&mut self, key: KeyHash) {
        let Some(place) = self.find(key) else { return };
        let state = &mut self.entries[place].state;
        let held = state.in_flight();
        state.release();
        if held == 1 {
            self.forget(place);
        }
    }

    /// Forgets a key; where requests of it are in flight, their slots stay taken.
    pub(super) fn forget_key(&mut self, key: KeyHash) {
        let Some(place) = self.find(key) else { return };
        if self.entries[place].state.in_flight() == 0 {
            self.forget(place);
        }
    }

    /// Forgets the key at `place`; the last key moves there.
    pub(super) fn forget(&mut self, place: usize) {
        self.unlist(place);
        self.entries.swap_remove(place);
        self.full_until = Seconds::default();
        if place == self.entries.len() {
            return;
        }
        let moved = self.entries.len();
        let hash = self.entries[place].key[0];
        if let Some(listed) = self.index.find_mut(hash, |listed| *listed as usize == moved) {
            *listed = u32::try_from(place).expect("a shard has fewer places than 32 bits can name");
        }
    }

    /// Takes the key at `place` out of the index.
    fn unlist(&mut self, place: usize) {
        let hash = self.entries[place].key[0];
        if let Ok(listed) = self.index.find_entry(hash, |listed| *listed as usize == place) {
            listed.remove();
        }
    }
}

impl Entry {
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

/// The lower half first: the index looks at that one, and the choice of the shard at the other.
#[expect(clippy::cast_possible_truncation, reason = "a half is what is wanted")]
fn halves(key: KeyHash) -> [u64; 2] {
    [key.0 as u64, (key.0 >> 64) as u64]
}

const _: () = assert!(size_of::<Entry>() == 56, "a key is to stay small");
