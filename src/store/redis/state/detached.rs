//! Decisions that finish even if their client has left, so that a client that hangs up leaves neither a slot nor half
//! of a decision behind.

use std::mem;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::core::RedisCore;
use super::decided::RedisDecision;
use super::give_back::take_out;
use super::reserve::RoomyPlaces;
use crate::decision::Batch;
use crate::decision::OwnedBatch;
use crate::key::KeyHash;

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
