//! Splits a batch by hash slot.

use smallvec::SmallVec;

use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::batch::Force;
use crate::key::KeyHash;

/// The charges of a batch whose keys are in one hash slot, so that one script decides them in one step.
#[derive(Debug)]
pub(super) struct SlotCharges<'b, 'p> {
    pub(super) slot: u16,
    /// Their places in the batch.
    pub(super) places: SmallVec<[usize; 4]>,
    pub(super) charges: SmallVec<[&'b Charge<'p>; 4]>,
}

/// The charges of a batch, by ascending slot.
pub(super) type ChargesBySlot<'b, 'p> = SmallVec<[SlotCharges<'b, 'p>; 1]>;

impl SlotCharges<'_, '_> {
    /// Whether one of the charges is binding.
    pub(super) fn binds(&self) -> bool {
        self.charges.iter().any(|charge| charge.force == Force::Binding)
    }
}

/// Splits a batch by hash slot. The order is ascending, so that all gateways reserve in the same order.
pub(super) fn split<'b, 'p>(batch: &'b Batch<'p>, slot: impl Fn(KeyHash) -> u16) -> ChargesBySlot<'b, 'p> {
    let mut parts = ChargesBySlot::new();
    for (place, charge) in batch.charges.iter().enumerate() {
        let slot = slot(charge.key);
        let known = parts.iter().position(|part: &SlotCharges<'_, '_>| part.slot == slot);
        if known.is_none() {
            parts.push(SlotCharges { slot, places: SmallVec::new(), charges: SmallVec::new() });
        }
        let at = known.unwrap_or(parts.len() - 1);
        let part = &mut parts[at];
        part.places.push(place);
        part.charges.push(charge);
    }
    parts.sort_unstable_by_key(|part| part.slot);
    parts
}
