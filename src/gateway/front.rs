//! The gateway as connections see it: what answers their requests.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::Request;
use http::Response;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::answer::ResponseBody;
use super::core::Core;
use super::exchange;
use super::handle;
use super::holding::Holding;
use super::snapshot::Snapshot;
use crate::clock::Clock;
use crate::listen::Connection;
use crate::listen::Handle;
use crate::listen::Incoming;
use crate::listen::Interim;
use crate::listen::Refused;
use crate::store::AnyStore;
use crate::upstream::Pool;

/// What answers the requests of one core. Clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    core: Arc<Core>,
}

impl Gateway {
    /// One for each core: connections to applications are kept by core. `live`, `store` and
    /// `holding` are shared by all.
    pub fn new(live: Arc<ArcSwap<Snapshot>>, store: Arc<AnyStore>, holding: Holding, clock: Clock) -> Self {
        Self {
            core: Arc::new(Core { live, store, pool: Pool::new(), holding, left_behind: TaskTracker::new(), clock }),
        }
    }

    /// Waits a moment for answers whose client has left, and for what this core still has to tell its store. Asked when
    /// its last request is through.
    pub async fn finish(&self) {
        let left_behind = &self.core.left_behind;
        left_behind.close();
        drop(timeout(FAREWELL, left_behind.wait()).await);
        self.core.store.finish().await;
    }
}

/// Whoever left before the answer and before the end keeps the slot.
const FAREWELL: Duration = Duration::from_millis(500);

impl Handle for Gateway {
    type Body = ResponseBody;

    fn handle(
        &self,
        connection: Arc<Connection>,
        request: Request<Incoming>,
        interim: Interim,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + 'static {
        handle::handle(Arc::clone(&self.core), connection, request, interim)
    }

    fn refused(&self, connection: &Connection, refused: Refused) {
        exchange::record_no_request(&self.core, connection, &refused);
    }
}
