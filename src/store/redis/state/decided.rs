//! The decision of Redis about a batch.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::rules::decision::batch::Force;
use crate::rules::decision::{Batch, Charge, OwnedBatch, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, Rule, Standings};
use crate::store::redis::state::reserve::RoomyPlaces;
use crate::store::redis::state::store::RedisCore;

/// The verdicts on a batch that are known so far, in its order. `None`: no store has decided that charge.
pub type PartialVerdicts = Vec<Option<Verdict>>;

/// The decision of Redis about a batch: a verdict for each charge whose server answers.
#[derive(Clone, Debug, Default)]
pub struct RedisDecision {
    /// In the order of the batch; `None` if the server of that key does not answer.
    pub verdicts: PartialVerdicts,
    /// The number under which slots were taken.
    pub(in crate::store::redis) holder: u32,
    /// This gateway was too busy to ask for a binding charge, so that it is unknown whether the request may pass.
    pub is_overload: bool,
}

impl RedisDecision {
    /// The keys of the slots that were taken.
    pub(in crate::store::redis) fn slots(&self, batch: &Batch<'_>) -> impl Iterator<Item = KeyHash> {
        let slots = batch.charges.iter().enumerate().filter(|(_, charge)| charge.is_slot());
        slots.filter(|(place, _)| self.is_charged(*place)).map(|(_, charge)| charge.key)
    }

    /// Whether Redis has made the charge at this place of the batch.
    pub fn is_charged(&self, place: usize) -> bool {
        is_charged(&self.verdicts, place)
    }
}

/// Whether the charge at this place is known to have been made.
pub(in crate::store::redis) fn is_charged(verdicts: &[Option<Verdict>], place: usize) -> bool {
    verdicts[place].as_ref().is_some_and(|verdict| verdict.charged.is_some())
}

// Which charges of a batch are to be given back, and the verdicts without them.

/// The places whose charge is to be given back, because a charge that they pass together with is denied.
pub(super) fn to_return(batch: &Batch<'_>, verdicts: &[Option<Verdict>]) -> Vec<usize> {
    let is_refused = |place: &usize| verdicts[*place].as_ref().is_some_and(|verdict| !verdict.passes());
    let refused: SmallVec<[usize; 4]> = (0..verdicts.len()).filter(is_refused).collect();
    let is_in_vain = |place: &usize| {
        let charge = &batch.charges[*place];
        !charge.is_attempt() && refused.iter().any(|other| charge.passes_with(&batch.charges[*other]))
    };
    (0..verdicts.len()).filter(|place| is_charged(verdicts, *place)).filter(is_in_vain).collect()
}

/// Changes the verdicts at these places to what they are without the charge.
pub(super) fn take_out(batch: &Batch<'_>, verdicts: &mut [Option<Verdict>], places: &[usize]) {
    for place in places {
        if let Some(verdict) = &mut verdicts[*place] {
            let fresh = verdict.charged.take().map_or(0, |charged| charged.fresh.len());
            give_units_back(batch.charges[*place].rule, fresh, &mut verdict.standings);
        }
    }
}

/// Changes where a key stands to what it is without the last request.
fn give_units_back(rule: &Rule, fresh: usize, standings: &mut Standings) {
    let (rates, algorithm, units) = match rule {
        Rule::Concurrent(_) => return,
        Rule::Distinct(rates) => (rates, Algorithm::SlidingWindowLog, fresh as u64),
        Rule::Rates { algorithm, rates, cost } => (rates, *algorithm, u64::from(cost.get())),
    };
    for (standing, rate) in standings.iter_mut().zip(rates) {
        let capacity = algorithm.capacity(rate).get();
        standing.remaining = (standing.remaining + units).min(u64::from(capacity));
        if standing.remaining == u64::from(capacity) {
            standing.reset = Duration::ZERO;
        }
    }
}

// Splits a batch by hash slot.

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

// Decisions that finish even if their client has left, so that a client that hangs up leaves neither a slot nor half
// of a decision behind.

/// Decides a batch in a task of its own. If the caller has left by then, its slots are given back.
pub(in crate::store::redis) async fn decide(
    core: &Arc<RedisCore>,
    batch: &Batch<'_>,
    remembered: bool,
    roomy: RoomyPlaces,
) -> RedisDecision {
    let (sender, receiver) = oneshot::channel();
    let owned = OwnedBatch::of(batch);
    let own = Arc::clone(core);
    core.tasks.spawn(async move {
        let batch = owned.batch();
        let sent = Instant::now();
        let decided = own.decide(&batch, remembered, &roomy).await;
        own.note_slots(&batch, &decided, sent);
        // If it is dropped, here or on its way, it gives back its slots.
        drop(sender.send(DetachedDecision::new(own, &batch, decided)));
    });
    match receiver.await {
        Ok(decision) => decision.take(),
        Err(_) => RedisDecision { verdicts: vec![None; batch.charges.len()], ..RedisDecision::default() },
    }
}

/// Gives back what was charged at these places, because another store denied the request.
pub(in crate::store::redis) fn give_back(
    core: &Arc<RedisCore>,
    batch: &Batch<'_>,
    decided: &mut RedisDecision,
    places: &[usize],
) {
    let before = decided.verdicts.clone();
    take_out(batch, &mut decided.verdicts, places);
    if places.is_empty() {
        return;
    }
    for charge in places.iter().map(|place| &batch.charges[*place]).filter(|charge| charge.is_slot()) {
        core.in_flight.drop_newest(charge.key, decided.holder);
    }
    let (owned, places, holder) = (OwnedBatch::of(batch), places.to_vec(), decided.holder);
    let own = Arc::clone(core);
    core.tasks.spawn(async move {
        let batch = owned.batch();
        own.give_back(&own.parts(&batch), &before, &places, holder).await;
    });
}

/// A decision on its way to the caller. If it is dropped, it gives back its slots.
struct DetachedDecision {
    core: Arc<RedisCore>,
    slots: Vec<KeyHash>,
    decided: RedisDecision,
}

impl DetachedDecision {
    fn new(core: Arc<RedisCore>, batch: &Batch<'_>, decided: RedisDecision) -> Self {
        Self { slots: decided.slots(batch).collect(), core, decided }
    }

    /// Hands the slots over to the request.
    fn take(mut self) -> RedisDecision {
        self.slots.clear();
        mem::take(&mut self.decided)
    }
}

impl Drop for DetachedDecision {
    fn drop(&mut self) {
        let slots = mem::take(&mut self.slots);
        if !slots.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            let core = Arc::clone(&self.core);
            self.core.tasks.spawn_on(async move { core.release(slots.into_iter()).await }, &runtime);
        }
    }
}
