//! Applies the rules to a request.

use std::sync::Arc;

use super::bans;
use super::challenge;
use super::final_decision::DecideError;
use super::final_decision::FinalDecision;
use super::final_decision::reserve;
use super::timing::Timing;
use crate::clock;
use crate::clock::Timestamp;
use crate::decision;
use crate::decision::CarriedSessions;
use crate::decision::Decision;
use crate::decision::Verdicts;
use crate::decision::device::DeviceKeys;
use crate::gateway::admit::admission::Admitted;
use crate::gateway::admit::body::RequestBody;
use crate::gateway::admit::framing::BadRequest;
use crate::gateway::snapshot::Snapshot;
use crate::head::Fields;
use crate::jwt::RequestClaims;
use crate::listen::Connection;
use crate::request::BodyFields;
use crate::request::RequestHead;
use crate::store::AnyStore;
use crate::store::Store;

/// Applies the rules. The store decides all limits of a request in one call.
pub async fn decide(
    admitted: &mut Admitted,
    live: &Arc<Snapshot>,
    connection: &Connection,
) -> Result<FinalDecision, DecideError> {
    let Admitted { exchange, body, proofs, .. } = admitted;
    let (worker, facts) = (&exchange.worker, &exchange.facts);
    let store = &worker.store;
    let head = RequestHead::read(&facts.head, facts.identity.client);
    let head = head.with_reputation(live.followed_lists.reputation(facts.identity.client));
    let banned = store.bans().of_address(facts.identity.client.address());
    let key_ring = live.device_cookies.then(|| store.key_ring().load());
    let device_keys = key_ring.as_deref().map(|ring| DeviceKeys { ring, now: facts.started });
    let sessions = carried_sessions(live, &head, store, facts.started);
    let mut entry = decision::enter(&live.policy, &head)
        .with_device_keys(device_keys)
        .with_sessions(sessions.as_deref())
        .with_ban(banned.is_some());
    if !facts.front.sees_end() {
        entry = entry.without_end();
    }
    let entry = if entry.is_challenged() { Box::pin(challenge::meet(worker, entry, proofs)).await } else { entry };
    let claims = match &live.tokens {
        Some(tokens) if entry.needs_claims(!body.is_empty()) => tokens.claims(&facts.head.fields, clock::wall()),
        _ => RequestClaims::default(),
    };
    let entry = entry.with_claims(&claims);
    let (mut fields, mut since) = (BodyFields::none(), facts.started);
    if !body.is_empty() && entry.needs_body() {
        let read = Box::pin(read_fields(body, &facts.head.fields, live.settings.inspect_body, connection));
        fields = read.await.map_err(DecideError::BadRequest)?;
        since = worker.clock.now();
    }
    let entry = entry.with_nonce(fastrand::u64(..));
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
    let timing = Timing { decided: now, age: now.since(facts.started), took: now.since(since) };
    let decided = match decision {
        Decision::Pass(pass) => FinalDecision::pass(pass, reservation, live, &plan, store, timing),
        Decision::Deny(denial) => FinalDecision::deny(denial, reservation, live, &plan, store, banned, timing).await,
    };
    Ok(decided.with_sessions(sessions.filter(|sessions| sessions.has_known())))
}

/// The sessions that a request carries, where any route learns sessions. This marks them as used.
fn carried_sessions(
    live: &Snapshot,
    head: &RequestHead<'_>,
    store: &AnyStore,
    now: Timestamp,
) -> Option<Box<CarriedSessions>> {
    if live.policy.session_carriers.is_empty() {
        return None;
    }
    let sessions = store.sessions();
    Some(CarriedSessions::read(&live.policy, head, &store.hasher(), |session| sessions.account(session, now)))
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
