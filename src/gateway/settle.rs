//! Slots in flight, given back exactly once, whatever ends their request.

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Waker;

use smallvec::SmallVec;

use crate::decision::Reservation;
use crate::store::AnyStore;
use crate::store::Store;

/// The slots that one request holds. They go back when this is dropped.
#[derive(Debug, Default)]
pub struct Held {
    reservations: SmallVec<[Reservation; 2]>,
    /// `None` while nothing is held: most requests never touch a count that all cores share.
    store: Option<Arc<AnyStore>>,
}

impl Held {
    pub fn hold(&mut self, store: &Arc<AnyStore>, reservations: SmallVec<[Reservation; 2]>) {
        if !reservations.is_empty() {
            self.store = Some(Arc::clone(store));
            self.reservations.extend(reservations);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(store) = self.store.take() else { return };
        let reservations = mem::take(&mut self.reservations);
        let mut settling = Box::pin(async move {
            let Ok(()) = store.settle(&reservations).await;
        });
        // A store in memory is done at once; one that is not gets a task of its own.
        let is_done = pin!(&mut settling).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if !is_done && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(settling);
        }
    }
}
