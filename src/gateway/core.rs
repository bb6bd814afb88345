//! What the requests of one core share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::holding::Holding;
use super::snapshot::Snapshot;
use crate::clock::Clock;
use crate::store::AnyStore;
use crate::upstream::Pool;

/// The parts of a gateway; every request under way holds on to them.
#[derive(Debug)]
pub struct Core {
    pub(super) live: Arc<ArcSwap<Snapshot>>,
    pub(super) store: Arc<AnyStore>,
    pub(super) pool: Pool,
    pub(super) holding: Holding,
    /// Requests whose client has left while their outcome is awaited.
    pub(super) left_behind: TaskTracker,
    pub(super) clock: Clock,
}

impl Core {
    /// Runs what is left of a request whose client has left.
    pub(super) fn go_on(&self, rest: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime this core is at its end.
        if let Ok(runtime) = Handle::try_current() {
            self.left_behind.spawn_on(rest, &runtime);
        }
    }
}
