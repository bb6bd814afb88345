//! The state that the requests of one worker share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::snapshot::Snapshot;
use crate::gateway::enforce::HeldRequests;
use crate::store::AnyStore;
use crate::upstream::Pool;
use crate::words::clock::Clock;

/// The state of one worker. Every request in progress keeps a reference to it.
#[derive(Debug)]
pub struct WorkerState {
    pub(super) live: Arc<ArcSwap<Snapshot>>,
    pub(super) store: Arc<AnyStore>,
    pub(super) pool: Pool,
    pub(super) held_requests: HeldRequests,
    /// Requests whose client has disconnected, but whose outcome is still awaited.
    pub(super) detached: TaskTracker,
    pub(super) clock: Clock,
}

impl WorkerState {
    /// Runs the rest of a request whose client has disconnected.
    pub(super) fn spawn_detached(&self, rest: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime this worker has ended.
        if let Ok(runtime) = Handle::try_current() {
            self.detached.spawn_on(rest, &runtime);
        }
    }
}
