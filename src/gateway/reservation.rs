//! What a request has reserved in the store, and what the store is told when it ends, exactly once, whatever ends it.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::task::ready;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::snapshot::Snapshot;
use crate::decision::PendingOutcome;
use crate::decision::Settlement;
use crate::decision::device::DeviceEnrollment;
use crate::key::KeyHash;
use crate::outcome::Outcome;
use crate::outcome::OutcomeRule;
use crate::record::ObservedOutcome;
use crate::store::AnyStore;
use crate::store::Store;

/// What a store has reserved for one request. Settled exactly once, and given back at the latest when this is dropped.
#[derive(Debug, Default)]
pub struct Reservation(
    /// `None` while nothing is reserved: most requests never touch a count that others share.
    Option<Reserved>,
);

#[derive(Debug)]
struct Reserved {
    store: Arc<AnyStore>,
    /// Slots in flight.
    slots: SmallVec<[KeyHash; 2]>,
    pending: Option<AwaitedOutcome>,
    /// Whether the request was on its way to the application.
    is_sent: bool,
}

/// What waits for the outcome, and the policy that says what the outcome means.
#[derive(Debug)]
pub struct AwaitedOutcome {
    pub live: Arc<Snapshot>,
    pub pending: Box<PendingOutcome>,
}

/// What came of a settlement.
#[derive(Debug)]
pub struct SettledRequest {
    pub settlement: SettlementTask,
    /// The device that a success makes known.
    pub enrollment: Option<Box<DeviceEnrollment>>,
}

impl Reservation {
    pub fn of(store: &Arc<AnyStore>, slots: SmallVec<[KeyHash; 2]>, pending: Option<AwaitedOutcome>) -> Self {
        if slots.is_empty() && pending.is_none() {
            return Self::default();
        }
        Self(Some(Reserved { store: Arc::clone(store), slots, pending, is_sent: false }))
    }

    /// The request is on its way: what comes of it is unknown until an answer says so.
    pub fn is_sent(&mut self) {
        if let Some(held) = &mut self.0 {
            held.is_sent = true;
        }
    }

    /// What the answer is to be held against; `None`: nothing depends on what it means.
    pub fn outcome_rule(&self) -> Option<&Arc<OutcomeRule>> {
        let AwaitedOutcome { live, pending } = self.0.as_ref()?.pending.as_ref()?;
        live.policy.routes.get(pending.route).outcome.as_ref()
    }

    /// Whether a success makes a device known.
    pub fn may_enroll(&self) -> bool {
        let waiting = self.0.as_ref().and_then(|held| held.pending.as_ref());
        waiting.is_some_and(|waiting| waiting.pending.enrollment.is_some())
    }

    /// Tells the store what became of the request; `None`: it was told already, or nothing waits for that. Without an
    /// outcome it reached the application, and what came of that cannot be told. `is_through`: nothing is in flight any
    /// more.
    pub fn settle(&mut self, outcome: Option<Outcome>, is_through: bool) -> Option<SettledRequest> {
        self.0.as_mut()?.settle(outcome, is_through)
    }

    /// The request is over. What was not settled has an unknown meaning, which is the answer, where it was sent; else it
    /// meant nothing.
    pub fn abandon(&mut self) -> Option<ObservedOutcome> {
        let held = self.0.as_mut()?;
        if held.is_sent {
            held.settle(None, true).map(|_| ObservedOutcome::Unknown)
        } else {
            held.settle(Some(Outcome::Neither), true);
            None
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.abandon();
        let Some(Reserved { store, slots, .. }) = self.0.take() else { return };
        let settlements: SmallVec<[_; 2]> = slots.into_iter().map(Settlement::Release).collect();
        let settled = store.settle_here(&settlements);
        if settled < settlements.len() {
            tell(&store, |store| async move {
                // What Redis was not told of, it forgets when the lease is over.
                let _ = store.settle(&settlements[settled..]).await;
            });
        }
    }
}

impl Reserved {
    fn settle(&mut self, outcome: Option<Outcome>, is_through: bool) -> Option<SettledRequest> {
        let AwaitedOutcome { live, mut pending } = self.pending.take()?;
        let enrollment = pending.enrollment.take().map(Box::new);
        let mut settlements = pending.settlements(&live.policy, outcome);
        if settlements.is_empty() {
            return Some(SettledRequest { settlement: SettlementTask::default(), enrollment });
        }
        let gives_back =
            settlements.iter().any(|it| !matches!(it, Settlement::Keep { .. } | Settlement::Charge { .. }));
        // In the same breath, if there is anything to tell.
        let slots = if is_through && gives_back { mem::take(&mut self.slots) } else { SmallVec::new() };
        settlements.extend(slots.iter().copied().map(Settlement::Release));
        let settled = self.store.settle_here(&settlements);
        if settled == settlements.len() {
            return Some(SettledRequest { settlement: SettlementTask::default(), enrollment });
        }
        drop(settlements);
        let telling = tell(&self.store, |store| async move {
            // A slot that Redis was not told to give back stays: that is for the one who guesses to mind.
            let mut settlements = pending.settlements(&live.policy, outcome);
            settlements.extend(slots.into_iter().map(Settlement::Release));
            let _ = store.settle(&settlements[settled..]).await;
        });
        Some(SettledRequest { settlement: SettlementTask(telling.filter(|_| gives_back)), enrollment })
    }
}

/// Ends when the store has taken note of what frees a client, so that it is free when it has its answer. Dropped, it
/// stops nothing.
#[derive(Debug, Default)]
pub struct SettlementTask(Option<JoinHandle<()>>);

impl Future for SettlementTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(telling) = &mut self.0 {
            drop(ready!(Pin::new(telling).poll(cx)));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

/// Tells a store that is elsewhere something, whether or not the request still runs.
fn tell<F>(store: &Arc<AnyStore>, telling: impl FnOnce(Arc<AnyStore>) -> F) -> Option<JoinHandle<()>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut telling = Box::pin(telling(Arc::clone(store)));
    if telling.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
        return None;
    }
    let runtime = Handle::try_current().ok()?;
    // The end of this worker waits for what is still to be sent.
    Some(store.tasks().spawn_on(telling, &runtime))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use smallvec::smallvec;

    use super::*;
    use crate::clock::Clock;
    use crate::clock::ManualClock;
    use crate::decision::Batch;
    use crate::decision::Charge;
    use crate::decision::batch::Force;
    use crate::decision::batch::Items;
    use crate::limit::Count;
    use crate::limit::OnFailure;
    use crate::limit::Rule;
    use crate::store::MemoryStore;
    use crate::store::memory::Settings;

    const KEY: KeyHash = KeyHash(7);

    async fn has_room(store: &AnyStore) -> bool {
        let rule = Rule::Concurrent(NonZeroU32::MIN);
        let charge = Charge {
            limit: 0,
            key: KEY,
            rule: &rule,
            count: Count::Requests,
            force: Force::Binding,
            on_failure: OnFailure::Local,
            items: Items::new(),
            unless_known: false,
        };
        let verdicts =
            store.decide(&Batch { charges: smallvec![charge], ..Batch::default() }).await.expect("memory answers");
        verdicts[0].passes()
    }

    #[tokio::test]
    async fn a_slot_is_given_back_when_its_request_is_dropped() {
        let clock = Clock::Manual(ManualClock::default());
        let store =
            Arc::new(AnyStore::Memory(Arc::new(MemoryStore::new(&Settings { max_keys: 100, snapshot: None }, clock))));
        assert!(has_room(&store).await);
        let held = Reservation::of(&store, smallvec![KEY], None);
        assert!(!has_room(&store).await);
        drop(held);
        assert!(has_room(&store).await);
        assert!(!has_room(&store).await);
    }
}
