//! Slots in flight, given back exactly once, whatever ends their request.

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Waker;

use smallvec::SmallVec;
use tokio::runtime::Handle;

use crate::decision::Settlement;
use crate::key::KeyHash;
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
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(store) = self.store.take() else { return };
        let slots = mem::take(&mut self.slots);
        // The end of this core waits for what is still to be sent.
        let tasks = store.tasks().cloned();
        let mut settling = Box::pin(async move {
            // What Redis was not told of, it forgets when the lease is over.
            let settlements: SmallVec<[_; 2]> = slots.into_iter().map(Settlement::Release).collect();
            let _ = store.settle(&settlements).await;
        });
        // A store in memory is done at once; one that is not gets a task of its own.
        let is_done = pin!(&mut settling).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if let Some(tasks) = tasks
            && let Ok(runtime) = Handle::try_current()
            && !is_done
        {
            tasks.spawn_on(settling, &runtime);
        }
    }
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
