//! Decisions that are finished though their client has left: hanging up keeps no slot, and no half of a decision.

use std::mem;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::core::Core;
use super::decided::RedisDecision;
use super::reserve;
use crate::decision::Batch;
use crate::decision::OwnedBatch;
use crate::key::KeyHash;

/// Decides a batch in a task of its own. Slots it took go back when nobody is there any more to take the answer.
pub(in crate::store::redis) async fn decide(core: &Arc<Core>, batch: &Batch<'_>, remembered: bool) -> RedisDecision {
    let (answer, answered) = oneshot::channel();
    let owned = OwnedBatch::of(batch);
    let own = Arc::clone(core);
    core.tasks.spawn(async move {
        let batch = owned.batch();
        let sent = Instant::now();
        let decided = own.decide(&batch, remembered).await;
        own.hold(&batch, &decided, sent);
        // Dropped, here or on its way, it gives back what it holds.
        drop(answer.send(Answer::new(own, &batch, decided)));
    });
    match answered.await {
        Ok(answer) => answer.take(),
        Err(_) => RedisDecision { verdicts: vec![None; batch.charges.len()], holder: 0 },
    }
}

/// Gives back what was charged at these places, which are those of another decision's making.
pub(in crate::store::redis) fn give_back(
    core: &Arc<Core>,
    batch: &Batch<'_>,
    decided: &mut RedisDecision,
    places: &[usize],
) {
    let before = decided.verdicts.clone();
    reserve::take_out(batch, &mut decided.verdicts, places);
    if places.is_empty() {
        return;
    }
    for charge in places.iter().map(|place| &batch.charges[*place]).filter(|charge| charge.is_slot()) {
        core.in_flight.give_up(charge.key, decided.holder);
    }
    let (owned, places, holder) = (OwnedBatch::of(batch), places.to_vec(), decided.holder);
    let own = Arc::clone(core);
    core.tasks.spawn(async move {
        let batch = owned.batch();
        own.give_back(&own.parts(&batch), &before, &places, holder).await;
    });
}

/// What came of a batch, on its way to whoever asked.
struct Answer {
    core: Arc<Core>,
    slots: Vec<KeyHash>,
    decided: RedisDecision,
}

impl Answer {
    fn new(core: Arc<Core>, batch: &Batch<'_>, decided: RedisDecision) -> Self {
        Self { slots: decided.slots(batch).collect(), core, decided }
    }

    /// From here on the slots are the request's.
    fn take(mut self) -> RedisDecision {
        self.slots.clear();
        mem::take(&mut self.decided)
    }
}

impl Drop for Answer {
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
