//! The steps of a request: admit, decide, act.

use std::sync::Arc;

use http::Version;
use http_body::Body;

use super::admit::body::BodyBounds;
use super::admit::body::ClientBody;
use super::admit::body::RequestBody;
use super::admit::framing;
use super::admit::framing::BadRequest;
use super::admit::strip::Stripped;
use super::admit::strip::strip;
use super::decide::bans;
use super::decide::challenge;
use super::decide::challenge::Proofs;
use super::decide::final_decision::DecideError;
use super::decide::final_decision::FinalAction;
use super::decide::final_decision::FinalDecision;
use super::decide::final_decision::reserve;
use super::exchange::Exchange;
use super::facts::Facts;
use super::forward::send;
use super::forward::upgrade::UpgradeRequest;
use super::hold;
use super::respond::reply;
use super::response_body::ResponseBody;
use super::snapshot::Snapshot;
use super::worker_state::WorkerState;
use crate::decision;
use crate::decision::Decision;
use crate::decision::Penalty;
use crate::decision::Verdicts;
use crate::decision::device::DeviceKeys;
use crate::head::Fields;
use crate::head::KnownName;
use crate::listen::Connection;
use crate::listen::IncomingRequest;
use crate::listen::InterimSender;
use crate::listen::OnUpgrade;
use crate::listen::Response;
use crate::pool::Pooled;
use crate::request::BodyFields;
use crate::request::RequestHead;
use crate::store::Store;

/// Answers one request. The future is dropped when the client disconnects; the exchange is recorded then as well.
pub(super) async fn handle(
    worker: Arc<WorkerState>,
    connection: Arc<Connection>,
    request: IncomingRequest,
    interim: InterimSender,
) -> Response<ResponseBody> {
    // The request uses this snapshot to its end.
    let live = worker.live.load_full();
    let mut admitted = match admit(worker, &live, &connection, request, interim) {
        Ok(admitted) => admitted,
        Err((exchange, bad_request)) => return reply::refuse(exchange, bad_request),
    };
    let decided = decide(&mut admitted, &live, &connection).await;
    act(admitted, &live, connection, decided).await
}

/// A request that passed the framing checks.
struct Admitted {
    exchange: Pooled<Exchange>,
    body: RequestBody,
    proofs: Proofs,
    /// The connection of a client that asks for another protocol, and names that in `Connection`.
    upgrade: Option<OnUpgrade>,
}

/// Refuses ambiguous requests, and removes from the head what is not for the application.
fn admit(
    worker: Arc<WorkerState>,
    live: &Arc<Snapshot>,
    connection: &Connection,
    request: IncomingRequest,
    interim: InterimSender,
) -> Result<Admitted, (Pooled<Exchange>, BadRequest)> {
    let IncomingRequest { head, body, upgrade } = request;
    let incoming = ClientBody::new(body, head.version);
    let identity = live.clients.identify(connection.peer.ip(), &head.fields);
    let facts = Facts::of(head, identity, connection, live, upgrade.is_some(), worker.clock.now());
    let mut exchange = Exchange::begin(worker, Arc::clone(live), facts, interim);
    let head = &mut exchange.facts.head;
    if let Err(bad_request) = framing::admit(head, connection, &live.settings, incoming.size_hint().lower()) {
        return Err((exchange, bad_request));
    }
    let Stripped { asks_for_upgrade, proofs } = strip(&mut head.fields, &live.significant_headers, live.challenges);
    let mut body = RequestBody::new(incoming, BodyBounds::of(&live.settings));
    if head.version >= Version::HTTP_11 && !body.is_empty() && head.fields.has(KnownName::EXPECT) {
        body.expect_continue(exchange.interim.clone());
    }
    exchange.set_body(body.progress());
    Ok(Admitted { exchange, body, proofs, upgrade: upgrade.filter(|_| asks_for_upgrade) })
}

/// Applies the rules. The store decides all limits of a request in one call.
async fn decide(
    admitted: &mut Admitted,
    live: &Arc<Snapshot>,
    connection: &Connection,
) -> Result<FinalDecision, DecideError> {
    let Admitted { exchange, body, proofs, .. } = admitted;
    let (worker, facts) = (&exchange.worker, &exchange.facts);
    let store = &worker.store;
    let head = RequestHead::read(&facts.head, facts.identity.client);
    let banned = store.bans().of_address(facts.identity.client.address());
    let key_ring = live.device_cookies.then(|| store.key_ring().load());
    let device_keys = key_ring.as_deref().map(|ring| DeviceKeys { ring, now: facts.started });
    let entry = decision::enter(&live.policy, &head).with_device_keys(device_keys).with_ban(banned.is_some());
    let (mut fields, mut since) = (BodyFields::none(), facts.started);
    if !body.is_empty() && entry.needs_body() {
        let read = Box::pin(read_fields(body, &facts.head.fields, live.settings.inspect_body, connection));
        fields = read.await.map_err(DecideError::BadRequest)?;
        since = worker.clock.now();
    }
    let mut plan = entry.plan(&fields, &store.hasher());
    if store.bans().has_keys() {
        plan = Box::pin(bans::apply(plan, store)).await;
    }
    let store_down = |error| DecideError::StoreDown(plan.route(), error);
    let decided_here = {
        let mut verdicts = Verdicts::new();
        store.decide_here(plan.batch(), &mut verdicts).then(|| plan.conclude(&verdicts))
    };
    let mut decision = match decided_here {
        Some(decision) => decision,
        None => plan.conclude(&Box::pin(store.decide(plan.batch())).await.map_err(store_down)?),
    };
    let mut reservation = reserve(&mut decision, store, live);
    if let (false, Decision::Deny(denial)) = (proofs.is_empty(), &decision)
        && Box::pin(challenge::redeem(worker, live, denial, proofs)).await
    {
        drop(reservation);
        decision = plan.conclude(&Box::pin(store.decide(plan.batch())).await.map_err(store_down)?);
        reservation = reserve(&mut decision, store, live);
    }
    let now = worker.clock.now();
    let took = now.since(since);
    Ok(match decision {
        Decision::Pass(pass) => FinalDecision::pass(pass, reservation, live, &plan, store, (now, took)),
        Decision::Deny(denial) => FinalDecision::deny(denial, reservation, live, &plan, store, (banned, took)).await,
    })
}

/// The fields in the first `bound` bytes of a body.
async fn read_fields(
    body: &mut RequestBody,
    fields: &Fields,
    bound: usize,
    connection: &Connection,
) -> Result<BodyFields, BadRequest> {
    let peeked = body.peek(bound, &connection.peeked).await?;
    Ok(BodyFields::read(fields, &peeked.start, peeked.is_whole, bound))
}

/// Forwards the request or answers it, after holding it if a limit says so.
async fn act(
    admitted: Admitted,
    live: &Arc<Snapshot>,
    connection: Arc<Connection>,
    decided: Result<FinalDecision, DecideError>,
) -> Response<ResponseBody> {
    let Admitted { mut exchange, body, upgrade, .. } = admitted;
    let action = match decided {
        Ok(FinalDecision { record, reservation, action }) => {
            exchange.set_decision(record, reservation);
            action
        }
        Err(DecideError::BadRequest(bad_request)) => return reply::refuse(exchange, bad_request),
        Err(DecideError::StoreDown(route, error)) => return reply::cannot_decide(exchange, body, route, error).await,
    };
    let (upstream, delay) = match action {
        FinalAction::Deny(denial) => {
            if let Penalty::Tarpit(span) = denial.penalty {
                return Box::pin(hold::tarpit(exchange, live, connection, body, denial, span)).await;
            }
            return reply::deny(exchange, live, body, &denial).await;
        }
        FinalAction::Forward { upstream, delay } => (upstream, delay),
    };
    let (exchange, body) = match delay {
        None => (exchange, body),
        Some(delay) => match Box::pin(hold::delay(exchange, live, &connection, body, delay)).await {
            Ok(held) => held,
            Err(answer) => return answer,
        },
    };
    let upgrade = UpgradeRequest::read(upgrade, &exchange.facts.head, !body.is_empty());
    if exchange.outcome_rule().is_some() {
        return send::to_its_end(exchange, connection, body, upstream, upgrade).await;
    }
    send::forward(exchange, connection, body, upstream, upgrade).await
}
