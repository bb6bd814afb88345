//! What a shared store asks of the copy of its counts in this process. That is never handed over: it does not move.

use super::MemoryStore;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::decision::batch::Charged;
use crate::decision::batch::Items;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::store::handover::Moved;

impl MemoryStore {
    pub(in crate::store) fn decide_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        stays(self.try_decide(batch))
    }

    pub(in crate::store) fn look_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        stays(self.try_look(batch))
    }

    /// Where a key stands.
    pub(in crate::store) fn look_at(&self, charge: &Charge<'_>) -> Verdict {
        stays(self.try_look_at(charge))
    }

    /// Whether the client is known, where a charge asks for that.
    pub(in crate::store) fn knows(&self, batch: &Batch<'_>) -> bool {
        stays(self.try_knows(batch))
    }

    /// Decides a batch that another store has denied: attempts are charged, and what shadows count alone.
    pub(in crate::store) fn deny_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        stays(self.decide_all(batch, false))
    }

    pub(in crate::store) fn settle_now(&self, settlement: &Settlement<'_>) {
        stays(self.try_settle(settlement));
    }

    /// Gives one slot in flight back.
    pub(in crate::store) fn release(&self, key: KeyHash) {
        stays(self.try_release(key));
    }

    pub(in crate::store) fn take_back(&self, key: KeyHash, rule: &Rule, charged: &Charged) {
        stays(self.try_take_back(key, rule, charged));
    }

    pub(in crate::store) fn charge_now(&self, key: KeyHash, rule: &Rule, items: &Items) {
        stays(self.try_charge(key, rule, items));
    }

    pub(in crate::store) fn forget_now(&self, key: KeyHash, until: Option<Timestamp>) {
        stays(self.try_forget(key, until));
    }

    /// Charges what another store has charged, and when, given by its place in the batch, whether or not there is room.
    /// A key that cannot be remembered goes without.
    pub(in crate::store) fn mirror(&self, batch: &Batch<'_>, charged: impl Fn(usize) -> Option<Timestamp>) {
        let all = batch.charges.iter().enumerate();
        for (charge, now) in all.filter_map(|(place, charge)| Some((charge, charged(place)?))) {
            let mut shard = stays(self.shard(charge.key));
            let known = shard.find(charge.key);
            if let Some(place) = known.or_else(|| shard.admit(charge.key, charge.rule, batch, now).ok()) {
                shard.charge(place, charge.rule, &charge.items, now);
            }
            if known.is_none() {
                shard.sweep(now, 1);
            }
        }
    }
}

pub(super) fn stays<T>(done: Result<T, Moved>) -> T {
    done.expect("only the counts of a gateway without a shared store move")
}
