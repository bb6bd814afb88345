//! The copy of the counts of a shared store in this process. It never moves to another process.

use super::store::MemoryStore;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::decision::Verdicts;
use crate::decision::batch::Charged;
use crate::decision::batch::Items;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::store::handover::CountsMoved;

impl MemoryStore {
    pub(in crate::store) fn decide_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        expect_here(self.collect_decided(batch))
    }

    pub(in crate::store) fn look_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        expect_here(self.try_look(batch))
    }

    /// Where a key stands.
    pub(in crate::store) fn look_at(&self, charge: &Charge<'_>) -> Verdict {
        expect_here(self.try_look_at(charge))
    }

    /// Whether the client is known; `false` where no charge depends on it.
    pub(in crate::store) fn is_known(&self, batch: &Batch<'_>) -> bool {
        expect_here(self.try_is_known(batch))
    }

    /// Decides a batch that another store has denied: charges only attempts and shadow limits.
    pub(in crate::store) fn deny_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        let mut verdicts = Verdicts::new();
        expect_here(self.decide_all(batch, false, &mut verdicts));
        verdicts.into_vec()
    }

    pub(in crate::store) fn settle_now(&self, settlement: &Settlement<'_>) {
        expect_here(self.try_settle(settlement));
    }

    /// Gives back one slot.
    pub(in crate::store) fn release(&self, key: KeyHash) {
        expect_here(self.try_release(key));
    }

    pub(in crate::store) fn take_back(&self, key: KeyHash, rule: &Rule, charged: &Charged) {
        expect_here(self.try_take_back(key, rule, charged));
    }

    pub(in crate::store) fn charge_now(&self, key: KeyHash, rule: &Rule, items: &Items) {
        expect_here(self.try_charge(key, rule, items));
    }

    pub(in crate::store) fn reset_now(&self, key: KeyHash, until: Option<Timestamp>) {
        expect_here(self.try_reset(key, until));
    }

    /// Charges what another store has charged, whether or not there is room. `charged` returns for a place in the batch
    /// when that was. A charge is skipped if its shard has no room for the key.
    pub(in crate::store) fn mirror(&self, batch: &Batch<'_>, charged: impl Fn(usize) -> Option<Timestamp>) {
        let all = batch.charges.iter().enumerate();
        for (charge, now) in all.filter_map(|(place, charge)| Some((charge, charged(place)?))) {
            let mut shard = expect_here(self.shard(charge.key));
            let known = shard.find(charge.key);
            if let Some(place) = known.or_else(|| shard.admit(charge.key, charge.rule, batch, now).ok()) {
                shard.charge(place, charge.rule, &charge.items, now);
            }
            if known.is_none() {
                shard.remove_expired(now, 1);
            }
        }
    }
}

/// Unwraps a result of counts that never move.
pub(super) fn expect_here<T>(result: Result<T, CountsMoved>) -> T {
    result.expect("only the counts of a gateway without a shared store move")
}
