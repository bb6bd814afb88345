//! What became of requests that were let pass.

use super::MemoryStore;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Settlement;
use crate::decision::batch::Charged;
use crate::decision::batch::Items;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::store::handover::Moved;

impl MemoryStore {
    /// Settles what is counted here, in this order; answers how many that were. The others are counted elsewhere.
    pub(in crate::store) fn settle_here(&self, settlements: &[Settlement<'_>]) -> usize {
        let moved = settlements.iter().position(|settlement| self.try_settle(settlement).is_err());
        moved.unwrap_or(settlements.len())
    }

    pub(super) fn try_settle(&self, settlement: &Settlement<'_>) -> Result<(), Moved> {
        match *settlement {
            Settlement::Release(key) => self.try_release(key),
            Settlement::TakeBack { key, rule, charged } => self.try_take_back(key, rule, charged),
            Settlement::Charge { key, rule, items } => self.try_charge(key, rule, items),
            Settlement::Keep { key, rule, items, charged } => {
                let shard = self.shard(key)?;
                let was_reset = charged.was_reset();
                drop(shard);
                if was_reset { self.try_charge(key, rule, items) } else { Ok(()) }
            }
            Settlement::Reset { key, .. } => self.try_forget(key, None),
            Settlement::Remember { of, most, keep } => {
                let _here = self.handover.here()?;
                let now = self.clock.now();
                self.known.remember(of, most, now + keep, now);
                Ok(())
            }
        }
    }

    pub(super) fn try_release(&self, key: KeyHash) -> Result<(), Moved> {
        self.shard(key)?.release(key);
        Ok(())
    }

    /// Counts no more what was charged. What was reset since is forgotten already, and what was charged after that is
    /// another's.
    pub(super) fn try_take_back(&self, key: KeyHash, rule: &Rule, charged: &Charged) -> Result<(), Moved> {
        let mut shard = self.shard(key)?;
        if !charged.was_reset() {
            shard.take_back(key, rule, charged, self.clock.now());
        }
        Ok(())
    }

    /// Counts a request, whether or not there is room. A key that cannot be remembered goes without.
    pub(super) fn try_charge(&self, key: KeyHash, rule: &Rule, items: &Items) -> Result<(), Moved> {
        let mut shard = self.shard(key)?;
        let now = self.clock.now();
        let known = shard.find(key);
        if let Some(place) = known.or_else(|| shard.admit(key, rule, &Batch::default(), now).ok()) {
            shard.charge(place, rule, items, now);
        }
        if known.is_none() {
            shard.sweep(now, 1);
        }
        Ok(())
    }

    /// `until`: when a shared store did, by its clock, if that is known. What it has charged since still counts there.
    pub(super) fn try_forget(&self, key: KeyHash, until: Option<Timestamp>) -> Result<(), Moved> {
        let mut shard = self.shard(key)?;
        shard.forget_key(key);
        // Before the lock is gone: whoever is charged from now on is not washed clean by this.
        self.unsettled.reset(key, until);
        Ok(())
    }
}
