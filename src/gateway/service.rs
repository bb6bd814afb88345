//! The gateway of one worker.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{Method, StatusCode};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::decide::descriptors;
use super::decide::descriptors::DescriptorAnswer;
use super::exchange;
use super::exchange::Exchange;
use super::handle::ResponseFuture;
use super::respond::reply;
use super::snapshot::{Snapshot, WorkerState};
use super::stages::Facts;
use crate::gateway::body::expect::BodyProgress;
use crate::gateway::enforce::HeldRequests;
use crate::gateway::stages::RequestId;
use crate::listen::{Connection, IncomingRequest, InterimSender, Refusal, RefusedHead};
use crate::rules::client::Identity;
use crate::rules::decision::descriptors::{DescriptorCall, InvalidCall};
use crate::store::AnyStore;
use crate::upstream::Pool;
use crate::wire::head::Fields;
use crate::words::clock::{Clock, Timestamp};
use crate::words::pool::Pooled;

/// A request that takes longer, and whose client has disconnected, keeps its concurrency slot.
const MAX_DRAIN: Duration = Duration::from_millis(500);

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
    #[inline]
    pub fn handle(
        &self,
        connection: Arc<Connection>,
        request: IncomingRequest,
        interim: InterimSender,
    ) -> ResponseFuture {
        ResponseFuture::new(Arc::clone(&self.worker), connection, request, interim)
    }

    /// Begins a request that a proxy describes. `received` counts its body, if it has one.
    pub fn begin(
        &self,
        live: &Arc<Snapshot>,
        facts: Facts,
        received: Option<BodyProgress>,
        interim: InterimSender,
    ) -> Pooled<Exchange> {
        Exchange::begin(Arc::clone(&self.worker), Arc::clone(live), |_| facts, received, interim)
    }

    /// Records a malformed head, and answers it in the form that its fields ask for.
    pub fn refuse(&self, connection: &Connection, refused: &RefusedHead) -> Refusal {
        let live = self.snapshot();
        let identity = live.clients.identify(connection.peer.ip(), &Fields::default());
        let scheme = if connection.tls_info().is_some() { "https" } else { "http" };
        self.refuse_described(&live, identity, scheme, (refused, &refused.fields), reason(refused.status))
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
        let mut answer = reply::malformed(live, refused, fields, reason, &request_id);
        if refused.method == Some(Method::HEAD) {
            answer.body.clear();
        }
        answer
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

/// Why a head was refused, for the log and the client.
fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "the head of the request is too long or has too many fields",
        StatusCode::URI_TOO_LONG => "the target of the request is too long",
        StatusCode::HTTP_VERSION_NOT_SUPPORTED => "this version of HTTP is not supported",
        StatusCode::NOT_IMPLEMENTED => "this protocol is not supported in a tunnel",
        _ => "the request head is malformed",
    }
}
