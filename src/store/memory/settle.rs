//! What became of requests that were let pass.

use super::MemoryStore;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Settlement;
use crate::decision::batch::Charged;
use crate::decision::batch::Items;
use crate::key::KeyHash;
use crate::limit::Rule;

impl MemoryStore {
    pub(in crate::store) fn settle_now(&self, settlement: &Settlement<'_>) {
        match *settlement {
            Settlement::Release(key) => self.release(key),
            Settlement::TakeBack { key, rule, charged } => self.take_back(key, rule, charged),
            Settlement::Charge { key, rule, items } => self.charge_now(key, rule, items),
            Settlement::Keep { key, rule, items, charged } => {
                if charged.was_reset() {
                    self.charge_now(key, rule, items);
                }
            }
            Settlement::Forget(key) => self.forget_now(key, None),
            Settlement::Remember { of, most, keep } => {
                let now = self.clock.now();
                self.known.remember(of, most, now + keep, now);
            }
        }
    }

    /// Gives one slot in flight back.
    pub(in crate::store) fn release(&self, key: KeyHash) {
        self.shard(key).release(key);
    }

    /// Counts no more what was charged. What was reset since is forgotten already, and what was charged after that is
    /// another's.
    pub(in crate::store) fn take_back(&self, key: KeyHash, rule: &Rule, charged: &Charged) {
        let mut shard = self.shard(key);
        if !charged.was_reset() {
            shard.take_back(key, rule, charged, self.clock.now());
        }
    }

    /// Counts a request, whether or not there is room. A key that cannot be remembered goes without.
    pub(in crate::store) fn charge_now(&self, key: KeyHash, rule: &Rule, items: &Items) {
        let mut shard = self.shard(key);
        let now = self.clock.now();
        let known = shard.find(key);
        if let Some(place) = known.or_else(|| shard.admit(key, rule, &Batch::default(), now).ok()) {
            shard.charge(place, rule, items, now);
        }
        if known.is_none() {
            shard.sweep(now, 1);
        }
    }

    /// `until`: when a shared store did, by its clock, if that is known. What it has charged since still counts there.
    pub(in crate::store) fn forget_now(&self, key: KeyHash, until: Option<Timestamp>) {
        let mut shard = self.shard(key);
        shard.forget_key(key);
        // Before the lock is gone: whoever is charged from now on is not washed clean by this.
        self.unsettled.reset(key, until);
    }
}
