//! The story of a request that is denied or held, and the counts of who asks most. A request that passes at once is only
//! counted.

use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::timing::Timing;
use crate::client::ClientIp;
use crate::clock;
use crate::clock::Timestamp;
use crate::decision::Denial;
use crate::decision::DenialCause;
use crate::decision::MetLimit;
use crate::decision::Pass;
use crate::decision::ShownPlan;
use crate::gateway::snapshot::Snapshot;
use crate::key::KeyHash;
use crate::key::OperatorKey;
use crate::record::kept_requests::DecisionFacts;
use crate::record::kept_requests::KeptCause;
use crate::record::kept_requests::KeptLimit;
use crate::record::kept_requests::KeptRequest;
use crate::request::NotUnderstood;
use crate::store::AnyStore;

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
        let mut kept = live.recorder.begin_story(DecisionFacts {
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
pub(in crate::gateway) fn of_denial(
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
    let mut kept = live.recorder.begin_story(DecisionFacts {
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
    for &mut MetLimit { limit, key, applied, ref mut standings } in met {
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
        kept.limits.push(KeptLimit { limit, key, applied, standings: mem::take(standings) });
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
