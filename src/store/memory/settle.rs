//! Settles requests that have passed, when their outcome is known.

use super::store::MemoryStore;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Settlement;
use crate::decision::batch::Charged;
use crate::decision::batch::Items;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::store::handover::CountsMoved;
use crate::store::unsettled::was_reset;

impl MemoryStore {
    /// Settles in this order, and returns how many were settled. The counts of the others have moved to another
    /// process.
    pub(in crate::store) fn settle_here(&self, settlements: &[Settlement<'_>]) -> usize {
        let moved = settlements.iter().position(|settlement| self.try_settle(settlement).is_err());
        moved.unwrap_or(settlements.len())
    }

    pub(super) fn try_settle(&self, settlement: &Settlement<'_>) -> Result<(), CountsMoved> {
        match *settlement {
            Settlement::Release(key) => self.try_release(key),
            Settlement::TakeBack { key, rule, charged } => self.try_take_back(key, rule, charged),
            Settlement::Charge { key, rule, items } => self.try_charge(key, rule, items),
            Settlement::Keep { key, rule, items, charged } => {
                let shard = self.shard(key)?;
                let was_reset = was_reset(charged);
                drop(shard);
                if was_reset { self.try_charge(key, rule, items) } else { Ok(()) }
            }
            Settlement::Reset(key) => self.try_reset(key, None),
            Settlement::Remember { of, most, keep } => {
                let _here = self.handover.here()?;
                let now = self.clock.now();
                self.known_clients.remember(of, most, now + keep, now);
                Ok(())
            }
        }
    }

    pub(super) fn try_release(&self, key: KeyHash) -> Result<(), CountsMoved> {
        self.shard(key)?.release(key);
        Ok(())
    }

    /// Takes back a charge. A charge that was reset since is gone already, and later charges belong to other requests.
    pub(super) fn try_take_back(&self, key: KeyHash, rule: &Rule, charged: &Charged) -> Result<(), CountsMoved> {
        let mut shard = self.shard(key)?;
        if !was_reset(charged) {
            shard.take_back(key, rule, charged, self.clock.now());
        }
        Ok(())
    }

    /// Counts a request, whether or not the limit has room. It is not counted if the shard has no room for its key.
    pub(super) fn try_charge(&self, key: KeyHash, rule: &Rule, items: &Items) -> Result<(), CountsMoved> {
        let mut shard = self.shard(key)?;
        let now = self.clock.now();
        let known = shard.find(key);
        if let Some(place) = known.or_else(|| shard.admit(key, rule, &Batch::default(), now).ok()) {
            shard.charge(place, rule, items, now);
        }
        if known.is_none() {
            shard.remove_expired(now, 1);
        }
        Ok(())
    }

    /// Resets a key. `until`: when a shared store reset it, by its clock, if that is known; later charges still count
    /// there.
    pub(super) fn try_reset(&self, key: KeyHash, until: Option<Timestamp>) -> Result<(), CountsMoved> {
        let mut shard = self.shard(key)?;
        shard.reset(key);
        // While the lock is held, so that this does not void the reservation of a later charge.
        self.unsettled.reset(key, until);
        Ok(())
    }
}
