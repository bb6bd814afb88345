//! The gateway as connections see it: a handler for their requests.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::exchange;
use super::handle;
use super::held_requests::HeldRequests;
use super::pooled_future::PooledFuture;
use super::response_body::ResponseBody;
use super::snapshot::Snapshot;
use super::worker_state::WorkerState;
use crate::clock::Clock;
use crate::listen::Connection;
use crate::listen::IncomingRequest;
use crate::listen::InterimSender;
use crate::listen::RefusedHead;
use crate::listen::RequestHandler;
use crate::listen::Response;
use crate::store::AnyStore;
use crate::upstream::Pool;

/// Handles the requests of one worker. Clones share its state.
#[derive(Clone, Debug)]
pub struct Gateway {
    worker: Arc<WorkerState>,
}

impl Gateway {
    /// Makes the gateway of one worker, with its own connections to applications. All workers share `live`, `store` and
    /// `held_requests`.
    pub fn new(live: Arc<ArcSwap<Snapshot>>, store: Arc<AnyStore>, held_requests: HeldRequests, clock: Clock) -> Self {
        Self {
            worker: Arc::new(WorkerState {
                live,
                store,
                pool: Pool::new(),
                held_requests,
                detached: TaskTracker::new(),
                clock,
            }),
        }
    }

    /// Waits briefly for requests whose client has disconnected, and for writes to the store. Called after the worker's
    /// last request.
    pub async fn finish(&self) {
        let detached = &self.worker.detached;
        detached.close();
        drop(timeout(MAX_DRAIN, detached.wait()).await);
        self.worker.store.finish().await;
    }
}

/// A request that takes longer, and whose client has disconnected, keeps its concurrency slot.
const MAX_DRAIN: Duration = Duration::from_millis(500);

impl RequestHandler for Gateway {
    type Body = ResponseBody;

    fn handle(
        &self,
        connection: Arc<Connection>,
        request: IncomingRequest,
        interim: InterimSender,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + Unpin + 'static {
        PooledFuture::new(handle::handle(Arc::clone(&self.worker), connection, request, interim))
    }

    fn refused(&self, connection: &Connection, refused: RefusedHead) {
        exchange::record_malformed_head(&self.worker, connection, &refused);
    }
}
