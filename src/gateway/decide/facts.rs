//! What a decision is made of, kept to tell later why a request was denied or held, and the counts of who asks most. A
//! request that passes at once is only counted.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use smallvec::SmallVec;

use crate::client::ClientIp;
use crate::client::Prefix;
use crate::clock;
use crate::clock::Timestamp;
use crate::decision::Denial;
use crate::decision::DenialCause;
use crate::decision::MetLimit;
use crate::decision::Pass;
use crate::decision::Plan;
use crate::gateway::snapshot::Snapshot;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::key::OperatorKey;
use crate::record::heavy_keys::pass_weight;
use crate::record::kept_requests::DecisionFacts;
use crate::record::kept_requests::KeptLimit;
use crate::store::AnyStore;

/// Counts the keys and the client of a request that passes, or a part of such requests while there are very many. `None`
/// unless a limit holds the request.
pub(in crate::gateway) fn of_pass(
    pass: &Pass,
    live: &Snapshot,
    plan: &Plan<'_, '_>,
    store: &AnyStore,
    now: Timestamp,
) -> Option<Arc<DecisionFacts>> {
    if let Some((_, span)) = pass.delay {
        let now = clock::wall();
        let (client, network) = client(plan);
        live.recorder.clients().count_passed(client, 1, now, || Arc::new(OperatorKey::of_client(network)));
        return Some(Arc::new(DecisionFacts {
            decided: now,
            frees_at: Some(now + span),
            too_many_values: false,
            limits: kept_limits(&pass.met, live, plan, &store.hashers(), now),
        }));
    }
    let weight = pass_weight(now);
    if weight > 0 {
        count_passed(weight, live, plan, store);
    }
    None
}

/// Counts a denied request under each limit that it met and under its client. `banned_for`: how long the address of the
/// client is still banned, if it is.
pub(in crate::gateway) fn of_denial(
    denial: &Denial,
    live: &Snapshot,
    plan: &Plan<'_, '_>,
    store: &AnyStore,
    banned_for: Option<Duration>,
) -> Arc<DecisionFacts> {
    let now = clock::wall();
    let (client, network) = client(plan);
    live.recorder.clients().count_denied(client, now, || Arc::new(OperatorKey::of_client(network)));
    let wait = match denial.cause {
        DenialCause::Banned => banned_for,
        DenialCause::Limited { .. } => denial.wait,
        DenialCause::Listed { .. } | DenialCause::NotOnList | DenialCause::TooManyValues => None,
    };
    Arc::new(DecisionFacts {
        decided: now,
        frees_at: wait.map(|wait| now + wait),
        too_many_values: denial.cause == DenialCause::TooManyValues,
        limits: kept_limits(&denial.met, live, plan, &store.hashers(), now),
    })
}

/// What each limit made of the request. Counts it under the key of each.
fn kept_limits(
    met: &[MetLimit],
    live: &Snapshot,
    plan: &Plan<'_, '_>,
    hashers: &Hashers,
    now: Timestamp,
) -> SmallVec<[KeptLimit; 2]> {
    let kept = met.iter().map(|met| {
        let facts = live.recorder.limit_facts(met.limit);
        let key = met.key.map(|hash| {
            // A key that was counted before has its readable form: the requests of a flood do not make it each.
            let key = || Arc::new(plan.operator_key(hashers, met.limit, hash).unwrap_or_default());
            let keys = live.recorder.keys_of(met.limit);
            if met.denied && !facts.shadow { keys.count_denied(hash, now, key) } else { keys.count_met(hash, now, key) }
        });
        KeptLimit { facts: Arc::clone(facts), key, denied: met.denied, standings: met.standings.clone() }
    });
    kept.collect()
}

fn count_passed(weight: u64, live: &Snapshot, plan: &Plan<'_, '_>, store: &AnyStore) {
    let now = clock::wall();
    let (client, network) = client(plan);
    live.recorder.clients().count_passed(client, weight, now, || Arc::new(OperatorKey::of_client(network)));
    for (limit, hash) in plan.counted_keys() {
        let key = || Arc::new(plan.operator_key(&store.hashers(), limit, hash).unwrap_or_default());
        live.recorder.keys_of(limit).count_passed(hash, weight, now, key);
    }
}

/// The network that the client is counted by, and its place in the table of clients.
fn client(plan: &Plan<'_, '_>) -> (KeyHash, IpNet) {
    let prefix = Prefix::default();
    let network = prefix.cut(ClientIp::new(plan.client()));
    let (bits, length) = match network {
        IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), prefix.v4),
        IpAddr::V6(address) => (address.to_bits(), prefix.v6),
    };
    (KeyHash(bits), IpNet::new_assert(network, length))
}
