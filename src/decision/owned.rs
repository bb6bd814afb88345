//! Batches that borrow nothing, for a task of their own or another process.

use serde::Deserialize;
use serde::Serialize;
use smallvec::SmallVec;

use super::Batch;
use super::Charge;
use super::batch::Force;
use super::batch::Items;
use super::batch::KnownClientKey;
use crate::key::KeyHash;
use crate::limit::Count;
use crate::limit::OnFailure;
use crate::limit::Rule;

/// A batch that owns its rules.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OwnedBatch {
    charges: Vec<OwnedCharge>,
    known: SmallVec<[KnownClientKey; 1]>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct OwnedCharge {
    limit: u16,
    key: KeyHash,
    rule: Rule,
    count: Count,
    force: Force,
    on_failure: OnFailure,
    items: Items,
    unless_known: bool,
    is_free: bool,
    /// Another process leases nothing.
    #[serde(skip)]
    leases: bool,
}

impl OwnedBatch {
    pub fn of(batch: &Batch<'_>) -> Self {
        let owned = |charge: &Charge<'_>| {
            let Charge { limit, key, rule, count, force, on_failure, ref items, unless_known, is_free, leases } =
                *charge;
            let (rule, items) = (rule.clone(), items.clone());
            OwnedCharge { limit, key, rule, count, force, on_failure, items, unless_known, is_free, leases }
        };
        Self { charges: batch.charges.iter().map(owned).collect(), known: batch.known.clone() }
    }

    pub fn batch(&self) -> Batch<'_> {
        let mut batch = Batch { known: self.known.clone(), ..Batch::default() };
        for charge in &self.charges {
            let OwnedCharge {
                limit,
                key,
                ref rule,
                count,
                force,
                on_failure,
                ref items,
                unless_known,
                is_free,
                leases,
            } = *charge;
            let items = items.clone();
            batch.charges.push(Charge {
                limit,
                key,
                rule,
                count,
                force,
                on_failure,
                items,
                unless_known,
                is_free,
                leases,
            });
        }
        batch
    }
}
