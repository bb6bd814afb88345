//! What is told to the store about a request that passed, exactly once, whatever ends it: slots in flight that come back,
//! and what its outcome means.

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

use crate::decision::Pending;
use crate::decision::Settlement;
use crate::gateway::snapshot::Snapshot;
use crate::key::KeyHash;
use crate::outcome::Outcome;
use crate::store::AnyStore;
use crate::store::Store;

/// The slots that one request holds. They go back when this is dropped.
#[derive(Debug, Default)]
pub struct Held {
    slots: SmallVec<[KeyHash; 2]>,
    /// `None` while nothing is held: most requests never touch a count that all cores share.
    store: Option<Arc<AnyStore>>,
}

impl Held {
    pub fn hold(&mut self, store: &Arc<AnyStore>, slots: SmallVec<[KeyHash; 2]>) {
        if !slots.is_empty() {
            self.store = Some(Arc::clone(store));
            self.slots.extend(slots);
        }
    }

    /// What is held, for whoever gives it back instead.
    fn let_go(&mut self) -> SmallVec<[KeyHash; 2]> {
        self.store = None;
        mem::take(&mut self.slots)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(store) = self.store.take() else { return };
        let settlements: SmallVec<[_; 2]> = mem::take(&mut self.slots).into_iter().map(Settlement::Release).collect();
        let settled = store.settle_here(&settlements);
        if settled < settlements.len() {
            tell(&store, |store| async move {
                // What Redis was not told of, it forgets when the lease is over.
                let _ = store.settle(&settlements[settled..]).await;
            });
        }
    }
}

/// Tells the store what became of a request. `None`: it reached the application, and what came of that cannot be told.
/// `held`: what the request holds, where it is through: given back in the same breath, if there is anything to tell.
pub fn settle(
    store: &Arc<AnyStore>,
    live: &Arc<Snapshot>,
    pending: Box<Pending>,
    outcome: Option<Outcome>,
    held: Option<&mut Held>,
) -> Settling {
    let mut settlements = pending.settlements(&live.policy, outcome);
    if settlements.is_empty() {
        return Settling::default();
    }
    let gives_back = settlements.iter().any(|it| !matches!(it, Settlement::Keep { .. } | Settlement::Charge { .. }));
    let slots = held.filter(|_| gives_back).map(Held::let_go).unwrap_or_default();
    settlements.extend(slots.iter().copied().map(Settlement::Release));
    let settled = store.settle_here(&settlements);
    if settled == settlements.len() {
        return Settling::default();
    }
    drop(settlements);
    let live = Arc::clone(live);
    let telling = tell(store, |store| async move {
        // A slot that Redis was not told to give back stays: that is for the one who guesses to mind.
        let mut settlements = pending.settlements(&live.policy, outcome);
        settlements.extend(slots.into_iter().map(Settlement::Release));
        let _ = store.settle(&settlements[settled..]).await;
    });
    Settling(telling.filter(|_| gives_back))
}

/// Ends when the store has taken note of what frees a client, so that it is free when it has its answer. Dropped, it
/// stops nothing.
#[derive(Debug, Default)]
pub struct Settling(Option<JoinHandle<()>>);

impl Future for Settling {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(telling) = &mut self.0 {
            drop(ready!(Pin::new(telling).poll(cx)));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

/// Has something told to a store that is elsewhere, whoever is still there.
fn tell<F>(store: &Arc<AnyStore>, telling: impl FnOnce(Arc<AnyStore>) -> F) -> Option<JoinHandle<()>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut telling = Box::pin(telling(Arc::clone(store)));
    if telling.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
        return None;
    }
    let runtime = Handle::try_current().ok()?;
    // The end of this core waits for what is still to be sent.
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
        let mut held = Held::default();
        held.hold(&store, smallvec![KEY]);
        assert!(!has_room(&store).await);
        drop(held);
        assert!(has_room(&store).await);
        assert!(!has_room(&store).await);
    }
}
