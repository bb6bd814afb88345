//! The gateway of one worker.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::admit::request_id::RequestId;
use super::decide::descriptors;
use super::decide::descriptors::DescriptorAnswer;
use super::exchange;
use super::exchange::Exchange;
use super::facts::Facts;
use super::handle;
use super::held_requests::HeldRequests;
use super::pooled_future::PooledFuture;
use super::respond::reply;
use super::snapshot::Snapshot;
use super::worker_state::WorkerState;
use crate::client::Identity;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::decision::descriptors::DescriptorCall;
use crate::decision::descriptors::InvalidCall;
use crate::head::Fields;
use crate::head::KnownName;
use crate::listen::Connection;
use crate::listen::IncomingRequest;
use crate::listen::InterimSender;
use crate::listen::Refusal;
use crate::listen::RefusedHead;
use crate::pool::Pooled;
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

    /// Answers one request. The future is dropped when the client goes away.
    pub fn handle(
        &self,
        connection: Arc<Connection>,
        request: IncomingRequest,
        interim: InterimSender,
    ) -> PooledFuture {
        PooledFuture::new(handle::handle(Arc::clone(&self.worker), connection, request, interim))
    }

    /// Begins a request that a proxy describes.
    pub fn begin(&self, live: &Arc<Snapshot>, facts: Facts, interim: InterimSender) -> Pooled<Exchange> {
        Exchange::begin(Arc::clone(&self.worker), Arc::clone(live), facts, interim)
    }

    /// Records a malformed head, and answers it without a body.
    pub fn refuse(&self, connection: &Connection, refused: &RefusedHead) -> Refusal {
        let live = self.snapshot();
        let identity = live.clients.identify(connection.peer.ip(), &Fields::default());
        let scheme = if connection.tls_info().is_some() { "https" } else { "http" };
        let request_id = self.record_undescribed(&live, identity, scheme, refused, "the request head is malformed");
        let mut fields = Fields::default();
        fields.append(KnownName::X_REQUEST_ID, request_id.as_bytes());
        Refusal { fields, body: Bytes::new() }
    }

    /// Records a malformed head that a proxy describes, and answers it in the form that its `fields` ask for. `reason` is a
    /// sentence for the log and the client.
    pub fn refuse_described(
        &self,
        live: &Snapshot,
        identity: Identity,
        scheme: &'static str,
        (refused, fields): (&RefusedHead, &Fields),
        reason: &str,
    ) -> Refusal {
        let request_id = self.record_undescribed(live, identity, scheme, refused, reason);
        reply::malformed(fields, refused.status, reason, &request_id)
    }

    /// Records a request that a proxy does not describe wholly, under the id that it returns. `reason` is a sentence for the
    /// log.
    pub fn record_undescribed(
        &self,
        live: &Snapshot,
        identity: Identity,
        scheme: &'static str,
        refused: &RefusedHead,
        reason: &str,
    ) -> RequestId {
        let request_id = RequestId::random();
        exchange::record_malformed_head(live, request_id, identity, scheme, refused, reason);
        request_id
    }

    /// The configuration in force. A request uses it to its end.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.worker.live.load_full()
    }

    pub fn now(&self) -> Timestamp {
        self.worker.clock.now()
    }

    /// Decides what the proxy at the other end of `connection` asks about descriptors.
    pub async fn decide_descriptors(
        &self,
        connection: &Connection,
        call: &DescriptorCall,
    ) -> Result<DescriptorAnswer, InvalidCall> {
        descriptors::decide(&self.worker, connection, call).await
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
