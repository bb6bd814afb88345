//! What the requests of one worker share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::held_requests::HeldRequests;
use super::snapshot::Snapshot;
use crate::clock::Clock;
use crate::store::AnyStore;
use crate::upstream::Pool;

/// The parts of a gateway; every request under way holds on to them.
#[derive(Debug)]
pub struct WorkerState {
    pub(super) live: Arc<ArcSwap<Snapshot>>,
    pub(super) store: Arc<AnyStore>,
    pub(super) pool: Pool,
    pub(super) held_requests: HeldRequests,
    /// Requests whose client has left while their outcome is awaited.
    pub(super) detached: TaskTracker,
    pub(super) clock: Clock,
}

impl WorkerState {
    /// Runs what is left of a request whose client has left.
    pub(super) fn spawn_detached(&self, rest: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime this worker is at its end.
        if let Ok(runtime) = Handle::try_current() {
            self.detached.spawn_on(rest, &runtime);
        }
    }
}
