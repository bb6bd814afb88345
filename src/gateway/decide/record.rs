//! What logs, events and operators see of a decision: the limit that denied or held a request, and its story.

use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use crate::gateway::decide::request::Timing;
use crate::gateway::reservation::Reservation;
use crate::gateway::snapshot::Snapshot;
use crate::record::attacks::SignInAttempt;
use crate::record::kept_requests::{DecisionFacts, KeptCause, KeptLimit, KeptRequest};
use crate::record::{AppliedLimit, MaskedKey};
use crate::rules::client::ClientIp;
use crate::rules::decision::{Denial, DenialCause, MetLimit, Pass, ShownPlan};
use crate::rules::key::{Hashers, KeyHash, OperatorKey};
use crate::rules::limit::LimitId;
use crate::rules::request::NotUnderstood;
use crate::store::AnyStore;
use crate::words::clock;
use crate::words::clock::Timestamp;

// The limit that denied or held a request, for the request log and for events. The key is masked here, so that no key in
// clear goes further.

/// `None` when no limit denied the request, or when nothing reads it.
pub(in crate::gateway) fn of_denial(
    denial: &Denial,
    live: &Snapshot,
    plan: &impl ShownPlan,
    store: &AnyStore,
) -> Option<Box<AppliedLimit>> {
    let limit = denial.limit.filter(|&limit| live.recorder.needs_key(limit))?;
    let masked_key = denial.key.and_then(|key| masked_key(limit, key, plan, &store.hashers()));
    let is_ban = denial.new_bans.iter().any(|ban| ban.limit == limit);
    let (key, span, is_suspect) = (denial.key, denial.wait, denial.is_suspect);
    Some(Box::new(AppliedLimit { limit, key, masked_key, span, is_ban, is_suspect }))
}

/// Records a request that is held before it is forwarded.
pub(in crate::gateway) fn of_delay(
    pass: &Pass,
    live: &Snapshot,
    plan: &impl ShownPlan,
    store: &AnyStore,
) -> Option<Box<AppliedLimit>> {
    let (limit, span) = pass.delay.filter(|&(limit, _)| live.recorder.needs_key(limit))?;
    let key = pass.delayed_key;
    let masked_key = key.and_then(|key| masked_key(limit, key, plan, &store.hashers()));
    Some(Box::new(AppliedLimit { limit, key, masked_key, span: Some(span), is_ban: false, is_suspect: false }))
}

fn masked_key(limit: LimitId, key: KeyHash, plan: &impl ShownPlan, hashers: &Hashers) -> Option<MaskedKey> {
    let parts = plan.display_key(hashers, limit, key)?.masked;
    Some(MaskedKey { hash: hashers.shown.rehash(key), parts })
}

/// The hashes of the keys with a login name, for the request log: what the log does not hold otherwise. Empty on every route
/// without a login.
pub(in crate::gateway) fn logged_keys(
    live: &Snapshot,
    plan: &impl ShownPlan,
    store: &AnyStore,
) -> Vec<(LimitId, KeyHash)> {
    let mut keys = Vec::new();
    for (limit, key) in plan.counted_keys().filter(|(limit, _)| live.recorder.logs_key_of(*limit)) {
        keys.push((limit, store.hashers().shown.rehash(key)));
    }
    keys
}

/// What is known of a sign-in before its answer. `None`: the route has no `outcome`.
pub(in crate::gateway) fn sign_in(
    reservation: &Reservation,
    live: &Snapshot,
    plan: &impl ShownPlan,
    store: &AnyStore,
) -> Option<Box<SignInAttempt>> {
    let (is_known_client, was_known) = reservation.is_known_client()?;
    let shown = |(limit, hash)| {
        let key = || Arc::new(plan.operator_key(&store.hashers(), limit, hash).unwrap_or_default());
        (limit, hash, live.recorder.keys_of(limit).shown_key(hash, key))
    };
    let client = client(live, plan).map(|(client, network)| {
        let key = || Arc::new(OperatorKey::of_client(network));
        (client, live.recorder.clients().shown_key(client, key))
    });
    let keys = plan.counted_keys().map(shown).collect();
    Some(Box::new(SignInAttempt { client, keys, is_known_client, was_known }))
}

// The story of a request that is denied or held, and the counts of who asks most. A request that passes at once is only
// counted.

/// Counts the keys and the client of a request that passes. `None` unless a limit holds the request.
pub(in crate::gateway) fn of_pass(
    pass: &mut Pass,
    live: &Snapshot,
    plan: &impl ShownPlan,
    store: &AnyStore,
    timing: Timing,
) -> Option<Box<KeptRequest>> {
    if let Some((limit, span)) = pass.delay {
        let now = clock::wall();
        if let Some((client, network)) = client(live, plan) {
            live.recorder.clients().count_passed(client, now, || Arc::new(OperatorKey::of_client(network)));
        }
        let mut kept = live.recorder.begin_kept_request(DecisionFacts {
            came: before(now, timing.age),
            decided: now,
            frees_at: Some(now + span),
            cause: KeptCause::Rule,
            limit: Some(limit),
            unread: pass.report.unread.map(NotUnderstood::as_str),
        });
        add_limits(&mut kept, &mut pass.met, live, plan, store);
        return Some(kept);
    }
    count_passed(live, plan, store);
    None
}

/// Counts a denied request under each limit that it met and under its client. `banned_for`: how long the address of the
/// client is still banned, if it is.
pub(in crate::gateway) fn keep_denial(
    denial: &mut Denial,
    live: &Snapshot,
    plan: &impl ShownPlan,
    store: &AnyStore,
    banned_for: Option<Duration>,
    timing: Timing,
) -> Box<KeptRequest> {
    let now = clock::wall();
    if let Some((client, network)) = client(live, plan) {
        live.recorder.clients().count_denied(client, now, || Arc::new(OperatorKey::of_client(network)));
    }
    let wait = match denial.cause {
        DenialCause::Banned => banned_for,
        DenialCause::Limited { .. } => denial.wait,
        DenialCause::Listed { .. }
        | DenialCause::Challenged(_)
        | DenialCause::NotOnList
        | DenialCause::TooManyValues
        | DenialCause::DeniedDescriptor => None,
    };
    let mut kept = live.recorder.begin_kept_request(DecisionFacts {
        came: before(now, timing.age),
        decided: now,
        frees_at: wait.map(|wait| now + wait),
        cause: match denial.cause {
            DenialCause::TooManyValues => KeptCause::TooManyValues,
            DenialCause::DeniedDescriptor => KeptCause::DeniedDescriptor,
            _ => KeptCause::Rule,
        },
        limit: denial.limit,
        unread: denial.report.unread.map(NotUnderstood::as_str),
    });
    add_limits(&mut kept, &mut denial.met, live, plan, store);
    kept
}

/// Adds what each limit made of the request, and counts it under the key of each.
fn add_limits(kept: &mut KeptRequest, met: &mut [MetLimit], live: &Snapshot, plan: &impl ShownPlan, store: &AnyStore) {
    let (now, shadow) = (kept.facts.decided, |limit| live.policy.limit(limit).shadow);
    for &mut MetLimit { limit, key, applied, ref mut standings, grounds } in met {
        let key = key.map(|hash| {
            // A key that was counted before has its readable form: the requests of a flood do not make it each.
            let key = || Arc::new(plan.operator_key(&store.hashers(), limit, hash).unwrap_or_default());
            let keys = live.recorder.keys_of(limit);
            if applied.is_some() && !shadow(limit) {
                keys.count_denied(hash, now, key)
            } else {
                keys.count_met(hash, now, key)
            }
        });
        kept.limits.push(KeptLimit { limit, key, applied, standings: mem::take(standings), grounds });
    }
}

fn count_passed(live: &Snapshot, plan: &impl ShownPlan, store: &AnyStore) {
    let now = clock::wall();
    if let Some((client, network)) = client(live, plan) {
        live.recorder.clients().count_passed(client, now, || Arc::new(OperatorKey::of_client(network)));
    }
    for (limit, hash) in plan.counted_keys() {
        let key = || Arc::new(plan.operator_key(&store.hashers(), limit, hash).unwrap_or_default());
        live.recorder.keys_of(limit).count_passed(hash, now, key);
    }
}

/// The network that the client is counted by, and its place in the table of clients. `None`: there is no client.
fn client(live: &Snapshot, plan: &impl ShownPlan) -> Option<(KeyHash, IpNet)> {
    let prefix = live.policy.client_prefix;
    let network = prefix.cut(ClientIp::new(plan.client()?));
    let (bits, length) = match network {
        IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), prefix.v4),
        IpAddr::V6(address) => (address.to_bits(), prefix.v6),
    };
    // After a reload, the networks of another length are others.
    Some((KeyHash(bits ^ u128::from(length) << 120), IpNet::new_assert(network, length)))
}

fn before(moment: Timestamp, span: Duration) -> Timestamp {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(moment.as_micros().saturating_sub(micros))
}
