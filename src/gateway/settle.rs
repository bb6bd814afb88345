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
#[derive(Debug)]
pub struct Held {
    store: Arc<AnyStore>,
    reservations: SmallVec<[Reservation; 2]>,
}

impl Held {
    pub fn none(store: Arc<AnyStore>) -> Self {
        Self { store, reservations: SmallVec::new() }
    }

    pub fn hold(&mut self, reservations: SmallVec<[Reservation; 2]>) {
        self.reservations.extend(reservations);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.reservations.is_empty() {
            return;
        }
        let store = Arc::clone(&self.store);
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
