//! The reservation of a request in the store. It is settled exactly once, however the request ends.

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

/// What the store has reserved for one request. It is settled exactly once, at the latest when it is dropped.
#[derive(Debug, Default)]
pub struct Reservation(
    /// `None` when nothing is reserved, as for most requests.
    Option<Reserved>,
);

#[derive(Debug)]
struct Reserved {
    store: Arc<AnyStore>,
    /// The concurrency slots that the request holds.
    slots: SmallVec<[KeyHash; 2]>,
    pending: Option<AwaitedOutcome>,
    /// Whether the request was sent to the application.
    is_sent: bool,
}

/// The settlements that wait for the outcome, and the policy that they belong to.
#[derive(Debug)]
pub struct AwaitedOutcome {
    pub live: Arc<Snapshot>,
    pub pending: Box<PendingOutcome>,
}

/// The result of a settlement.
#[derive(Debug)]
pub struct SettledRequest {
    pub settlement: SettlementTask,
    /// The device that a success enrolls.
    pub enrollment: Option<Box<DeviceEnrollment>>,
}

impl Reservation {
    pub fn of(store: &Arc<AnyStore>, slots: SmallVec<[KeyHash; 2]>, pending: Option<AwaitedOutcome>) -> Self {
        if slots.is_empty() && pending.is_none() {
            return Self::default();
        }
        Self(Some(Reserved { store: Arc::clone(store), slots, pending, is_sent: false }))
    }

    /// The request goes to the application. Its outcome is unknown until there is an answer.
    pub fn mark_sent(&mut self) {
        if let Some(reserved) = &mut self.0 {
            reserved.is_sent = true;
        }
    }

    /// The rule that decides the outcome; `None` when nothing depends on it.
    pub fn outcome_rule(&self) -> Option<&Arc<OutcomeRule>> {
        let AwaitedOutcome { live, pending } = self.0.as_ref()?.pending.as_ref()?;
        live.policy.routes.get(pending.route).outcome.as_ref()
    }

    /// Whether concurrency slots are given back at the end of the request.
    pub fn holds_slots(&self) -> bool {
        self.0.as_ref().is_some_and(|reserved| !reserved.slots.is_empty())
    }

    /// Whether a success enrolls a device.
    pub fn may_enroll(&self) -> bool {
        let awaited = self.0.as_ref().and_then(|reserved| reserved.pending.as_ref());
        awaited.is_some_and(|awaited| awaited.pending.enrollment.is_some())
    }

    /// Settles the request in the store; `None` when it was settled already, or when nothing depends on the outcome.
    /// Without an outcome the request reached the application, but its outcome is unknown. `is_through`: the request
    /// has ended, so its slots are given back.
    pub fn settle(&mut self, outcome: Option<Outcome>, is_through: bool) -> Option<SettledRequest> {
        self.0.as_mut()?.settle(outcome, is_through)
    }

    /// The request has ended. If it was not settled yet, it is settled now: with an unknown outcome, which is returned,
    /// if it was sent, and else as neither success nor failure.
    pub fn abandon(&mut self) -> Option<ObservedOutcome> {
        let reserved = self.0.as_mut()?;
        if reserved.is_sent {
            reserved.settle(None, true).map(|_| ObservedOutcome::Unknown)
        } else {
            reserved.settle(Some(Outcome::Neither), true);
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
            run_to_end(&store, |store| async move {
                // If Redis does not get this, it releases the slots when their lease ends.
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
        // In the same call, if the outcome gives anything back.
        let slots = if is_through && gives_back { mem::take(&mut self.slots) } else { SmallVec::new() };
        settlements.extend(slots.iter().copied().map(Settlement::Release));
        let settled = self.store.settle_here(&settlements);
        if settled == settlements.len() {
            return Some(SettledRequest { settlement: SettlementTask::default(), enrollment });
        }
        drop(settlements);
        let write = run_to_end(&self.store, |store| async move {
            // If Redis does not get this, the charges stay, to the disadvantage of the client.
            let mut settlements = pending.settlements(&live.policy, outcome);
            settlements.extend(slots.into_iter().map(Settlement::Release));
            let _ = store.settle(&settlements[settled..]).await;
        });
        Some(SettledRequest { settlement: SettlementTask(write.filter(|_| gives_back)), enrollment })
    }
}

/// Waits until the store has recorded what frees a client, so that the client is free when it has its answer. Dropping
/// it does not stop the write.
#[derive(Debug, Default)]
pub struct SettlementTask(Option<JoinHandle<()>>);

impl Future for SettlementTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(write) = &mut self.0 {
            drop(ready!(Pin::new(write).poll(cx)));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

/// Runs a write to a remote store in a task of its own, so that it completes even when the request ends.
fn run_to_end<F>(store: &Arc<AnyStore>, write: impl FnOnce(Arc<AnyStore>) -> F) -> Option<JoinHandle<()>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut write = Box::pin(write(Arc::clone(store)));
    if write.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
        return None;
    }
    let runtime = Handle::try_current().ok()?;
    // The worker waits for these tasks before it ends.
    Some(store.tasks().spawn_on(write, &runtime))
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
            is_free: false,
        };
        let verdicts =
            store.decide(&Batch { charges: smallvec![charge], ..Batch::default() }).await.expect("memory answers");
        verdicts[0].passes()
    }

    #[tokio::test]
    async fn a_slot_is_given_back_when_its_request_is_dropped() {
        let clock = Clock::Manual(ManualClock::default());
        let store = Arc::new(AnyStore::Memory(Arc::new(MemoryStore::new(
            &Settings { max_keys: 100, max_sessions: 1000, snapshot: None },
            clock,
        ))));
        assert!(has_room(&store).await);
        let reserved = Reservation::of(&store, smallvec![KEY], None);
        assert!(!has_room(&store).await);
        drop(reserved);
        assert!(has_room(&store).await);
        assert!(!has_room(&store).await);
    }
}
