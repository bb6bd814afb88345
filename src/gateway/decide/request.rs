//! Applies the rules to a request, in the order of their precedence.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::{bans, challenge};
use crate::gateway::admit::Admitted;
use crate::gateway::body::RequestBody;
use crate::gateway::decide::record;
use crate::gateway::exchange::Persistence;
use crate::gateway::fault::BadRequest;
use crate::gateway::reservation::{AwaitedOutcome, Reservation};
use crate::gateway::snapshot::Snapshot;
use crate::gateway::stages::Decided;
use crate::listen::Connection;
use crate::rules::decision;
use crate::rules::decision::known_client::DeviceKeys;
use crate::rules::decision::{CarriedSessions, Decision, Denial, Pass, Plan, ShownPlan, Verdicts};
use crate::rules::jwt::RequestClaims;
use crate::rules::limit::LimitId;
use crate::rules::request::{BodyFields, CanonicalHead};
use crate::rules::route::{RouteId, UpstreamId};
use crate::store::bans::BanId;
use crate::store::{AnyStore, Store, StoreError};
use crate::wire::head::Fields;
use crate::words::clock;
use crate::words::clock::Timestamp;
use crate::words::pool::Pooled;

/// Applies the rules in the order of their precedence: lists and `only`, the ban of the address, the challenge of a list, bans
/// of keys, and then all limits, which the store decides in one step. Meeting the challenge of a limit buys one more decision.
pub async fn decide(
    admitted: &mut Admitted,
    live: &Arc<Snapshot>,
    connection: &Connection,
    persistence: &Persistence,
) -> Result<FinalDecision, DecideError> {
    let Admitted { exchange, body, proofs, .. } = admitted;
    let (worker, facts) = (&exchange.worker, &exchange.facts);
    let store = &worker.store;

    // What is known of the client without asking anybody.
    let mut head = CanonicalHead::read(&facts.head, facts.identity.client);
    head.reputation = live.followed_lists.reputation(facts.identity.client);
    let banned = store.bans().of_address(facts.identity.client.address());
    let key_ring = live.device_cookies.then(|| store.key_ring().load());
    let device_keys = key_ring.as_deref().map(|ring| DeviceKeys { ring, now: facts.started });
    let sessions = carried_sessions(live, &head, store, facts.started);

    // Lists, the ban of the address, the challenge of a list.
    let mut entry = decision::enter(&live.policy, &head);
    entry.set_device_keys(device_keys);
    entry.set_sessions(sessions.as_deref());
    if banned.is_some() {
        entry.ban();
    }
    if !facts.front.sees_end() {
        entry.forgo_end();
    }
    if entry.is_challenged() {
        Box::pin(challenge::meet(worker, &mut entry, proofs)).await;
    }

    // What the keys of limits are made of: claims of tokens, fields of the body.
    let claims = match &live.tokens {
        Some(tokens) if entry.needs_claims(!body.is_empty()) => tokens.claims(&facts.head.fields, clock::wall()),
        _ => RequestClaims::default(),
    };
    entry.set_claims(&claims);
    let (mut fields, mut since) = (BodyFields::none(), facts.started);
    if !body.is_empty() && entry.needs_body() {
        let read = Box::pin(read_fields(body, &facts.head.fields, live.settings.inspect_body, connection));
        fields = read.await.map_err(DecideError::BadRequest)?;
        since = worker.clock.now();
    }
    entry.set_nonce(fastrand::u64(..));

    // Bans of keys, then the limits.
    let mut plan = entry.plan(&fields, &store.hasher());
    if store.bans().has_keys() {
        Box::pin(bans::apply(&mut plan, store)).await;
    }
    let (mut decision, mut reservation) = decide_limits(&plan, store, live, persistence).await?;
    if let (false, Decision::Deny(denial)) = (proofs.is_empty(), &decision)
        && Box::pin(challenge::redeem(worker, live, denial, proofs)).await
    {
        drop(reservation);
        (decision, reservation) = Box::pin(decide_limits(&plan, store, live, persistence)).await?;
    }

    let now = worker.clock.now();
    let timing = Timing { decided: now, age: now.since(facts.started), took: now.since(since) };
    let mut decided = match decision {
        Decision::Pass(pass) => FinalDecision::pass(pass, reservation, live, &plan, store, timing),
        Decision::Deny(denial) => FinalDecision::deny(denial, reservation, live, &plan, store, banned, timing).await,
    };
    decided.sessions = sessions.filter(|sessions| sessions.may_be_of_somebody());
    Ok(decided)
}

/// Has the store decide the limits of a plan, all in one step. Nothing waits where the limits are in memory. A store that was
/// asked may have charged the request: its answer is awaited whether or not the client is still there, so that the request is
/// sent, or what it holds is given back.
async fn decide_limits(
    plan: &Plan<'_, '_>,
    store: &Arc<AnyStore>,
    live: &Arc<Snapshot>,
    persistence: &Persistence,
) -> Result<(Decision, Reservation), DecideError> {
    let decided_here = {
        let mut verdicts = Verdicts::new();
        store.decide_here(plan.batch(), &mut verdicts).then(|| plan.conclude(&verdicts))
    };
    let mut decision = if let Some(decision) = decided_here {
        decision
    } else {
        persistence.set(true);
        let verdicts = Box::pin(store.decide(plan.batch())).await;
        persistence.set(false);
        plan.conclude(&verdicts.map_err(|error| DecideError::StoreDown(plan.route(), error))?)
    };
    let reservation = reserve(&mut decision, store, live);
    Ok((decision, reservation))
}

/// The sessions that a request carries, where any route learns sessions. This marks them as used.
fn carried_sessions(
    live: &Snapshot,
    head: &CanonicalHead<'_>,
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

// A final decision: its bans have begun, its record is made, and its reservation is taken.

/// A decision, its record and its reservation.
#[derive(Debug)]
pub struct FinalDecision {
    pub decided: Pooled<Decided>,
    pub reservation: Reservation,
    pub action: FinalAction,
    /// The sessions that the request carries; `None`: none that is known.
    pub sessions: Option<Box<CarriedSessions>>,
}

#[derive(Debug)]
pub enum FinalAction {
    /// `delay`: the limit that holds the request before it is forwarded, and for how long.
    Forward {
        upstream: UpstreamId,
        delay: Option<(LimitId, Duration)>,
    },
    Deny(Pooled<Denial>),
}

/// Why a request could not be decided.
#[derive(Clone, Copy, Debug)]
pub enum DecideError {
    /// A key reads the body, and the body is malformed.
    BadRequest(BadRequest),
    /// The store is down, and a limit denies during the outage.
    StoreDown(Option<RouteId>, StoreError),
}

/// Moves what the store has reserved, and what the outcome will settle, out of a decision into a reservation.
pub fn reserve(decision: &mut Decision, store: &Arc<AnyStore>, live: &Arc<Snapshot>) -> Reservation {
    let (slots, pending) = match decision {
        Decision::Pass(pass) => (mem::take(&mut pass.slots), pass.pending.take()),
        // Limits in shadow mode charge denied requests as well.
        Decision::Deny(denial) => (mem::take(&mut denial.slots), denial.pending.take()),
    };
    Reservation::of(store, slots, pending.map(|pending| AwaitedOutcome { live: Arc::clone(live), pending }))
}

impl FinalDecision {
    pub fn pass(
        mut pass: Pooled<Pass>,
        reservation: Reservation,
        live: &Snapshot,
        plan: &impl ShownPlan,
        store: &AnyStore,
        timing: Timing,
    ) -> Self {
        let applied_limit = record::of_delay(&pass, live, plan, store);
        let kept = record::of_pass(&mut pass, live, plan, store, timing);
        let mut decided = Pooled::made_by(|| Decided::of_pass(&mut pass, applied_limit, kept, timing.took));
        decided.sign_in = record::sign_in(&reservation, live, plan, store);
        decided.keys = record::logged_keys(live, plan, store);
        Self {
            decided,
            reservation,
            action: FinalAction::Forward { upstream: pass.upstream, delay: pass.delay },
            sessions: None,
        }
    }

    /// Begins the bans of a denial. `banned`: the ban of the client's address and how long it lasts, if it has one.
    pub async fn deny(
        mut denial: Pooled<Denial>,
        reservation: Reservation,
        live: &Arc<Snapshot>,
        plan: &impl ShownPlan,
        store: &Arc<AnyStore>,
        banned: Option<(BanId, Duration)>,
        timing: Timing,
    ) -> Self {
        if !denial.new_bans.is_empty() {
            let investigate = |suspected| bans::investigate(suspected, live, store);
            denial = Box::pin(bans::begin(denial, &live.policy, plan, store, investigate)).await;
        }
        let applied_limit = record::of_denial(&denial, live, plan, store);
        let kept = record::keep_denial(&mut denial, live, plan, store, banned.map(|(_, left)| left), timing);
        let ban = bans::ban_of(&denial, banned.map(|(ban, _)| ban));
        let mut decided =
            Pooled::made_by(|| Decided::of_denial(&mut denial, applied_limit, Some(kept), ban, timing.took));
        decided.keys = record::logged_keys(live, plan, store);
        Self { decided, reservation, action: FinalAction::Deny(denial), sessions: None }
    }
}

// When a request was decided.

/// When a request was decided.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// By the clock of the worker.
    pub decided: Timestamp,
    /// How long the request had been here by then.
    pub age: Duration,
    /// How long the decision took, the store included.
    pub took: Duration,
}
