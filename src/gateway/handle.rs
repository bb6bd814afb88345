//! The steps of a request: admit, decide, enforce, forward.

use std::sync::Arc;

use super::decide::request::decide;
use super::enforce::{Passed, enforce};
use super::exchange::Exchange;
use super::fault::BadRequest;
use super::forward::send;
use super::forward::upgrade::UpgradeRequest;
use super::respond::reply;
use super::response_body::ResponseBody;
use super::snapshot::{Snapshot, WorkerState};
use super::stages::Facts;
use crate::gateway::admit::{Arrival, admit};
use crate::gateway::body::{BodyBounds, ClientBody, RequestBody};
use crate::gateway::headers;
use crate::listen::{Connection, IncomingRequest, InterimSender, Response};

/// Answers one request. The future is dropped when the client disconnects; the exchange is recorded then as well.
pub(super) async fn handle(
    worker: Arc<WorkerState>,
    connection: Arc<Connection>,
    request: IncomingRequest,
    interim: InterimSender,
) -> Response<ResponseBody> {
    // The request uses this snapshot to its end.
    let live = worker.live.load_full();
    let IncomingRequest { head, body, upgrade } = request;
    let body = RequestBody::new(ClientBody::new(body, head.version), BodyBounds::of(&live.settings));
    let identity = live.clients.identify(connection.peer.ip(), &head.fields);
    let facts = Facts::of(head, identity, &connection, &live, upgrade.is_some(), worker.clock.now());
    let exchange = Exchange::begin(worker, Arc::clone(&live), facts, body.progress(), interim);
    if headers::has_passed(&exchange.facts.head.fields) {
        headers::log(&exchange.facts.head.fields, connection.peer.ip());
        return reply::refuse(exchange, BadRequest::Loop);
    }
    let arrival = Arrival { exchange, body, upgrade, tls: connection.tls_info() };
    match judge(&live, &connection, arrival).await {
        Ok(passed) => forward(passed, connection).await,
        Err(answer) => answer,
    }
}

/// The steps that every front has in common: a request passes, or it has its answer. Delays are over by then.
pub async fn judge(
    live: &Arc<Snapshot>,
    connection: &Connection,
    arrival: Arrival<'_>,
) -> Result<Passed, Response<ResponseBody>> {
    let mut admitted = match admit(live, connection, arrival) {
        Ok(admitted) => admitted,
        Err((exchange, bad_request)) => return Err(reply::refuse(exchange, bad_request)),
    };
    let decided = decide(&mut admitted, live, connection).await;
    enforce(admitted, live, connection, decided).await
}

async fn forward(passed: Passed, connection: Arc<Connection>) -> Response<ResponseBody> {
    let Passed { exchange, body, upgrade, upstream } = passed;
    let upgrade = UpgradeRequest::read(upgrade, &exchange.facts.head, !body.is_empty());
    if exchange.reservation.outcome_rule().is_some() {
        return send::to_its_end(exchange, connection, body, upstream, upgrade).await;
    }
    send::forward(exchange, connection, body, upstream, upgrade).await
}
