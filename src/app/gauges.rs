//! The work of the record once a second, on the thread that serves no request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::{MissedTickBehavior, interval};

use crate::app::followed_lists::OpenLists;
use crate::app::state::LiveSnapshot;
use crate::app::store;
use crate::gateway::tokens::KeyFailure;
use crate::gateway::{HeldRequests, Snapshot};
use crate::listen::Connections;
use crate::record::advice::{
    BusiestClient, NearPath, Observed, ObservedLimit, ObservedRoute, UnavailableKeys, UnlimitedLogin, UnseenRoute,
};
use crate::record::heavy_keys::Order;
use crate::record::history::Totals;
use crate::record::{Fault, Gauges, Metrics, Sinks};
use crate::rules::client::{ClientIp, TrustedProxies};
use crate::rules::decision::{FoundKey, Policy};
use crate::rules::key::spec::name_of;
use crate::rules::key::{KeyPart, NamePattern, Selector, Spelling};
use crate::rules::limit::{Limit, LimitId, Rule};
use crate::rules::route::{Route, RouteId};
use crate::store::AnyStore;
use crate::store::redis::Eviction;
use crate::store::snapshot::{SnapshotFailure, SnapshotWriter};
use crate::words::clock;
use crate::words::clock::Timestamp;

/// Short beside a step of the history, so that each count falls into the step in which it happened.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reads the counters for the history, ends the minutes of the counts by key, puts attacks together, and judges what looks
/// misconfigured. Never returns.
pub(super) async fn run(live: Arc<ArcSwap<Snapshot>>, store: Arc<AnyStore>, sinks: Sinks) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = clock::wall();
        sinks.metrics().history().read_counters(now);
        sinks.key_tables().finish_minutes(now);
        let last_minute = || sinks.metrics().history().report(1, now);
        sinks.attacks().gather(sinks.kept_requests(), last_minute, now);
        sinks.advisor().judge(&observe(&live.load(), &store, &sinks, now), now);
    }
}

fn turned_away(store: &AnyStore) -> u64 {
    match store {
        AnyStore::Memory(memory) => memory.turned_away(),
        AnyStore::Shared(shared) => shared.turned_away(),
    }
}

// Gauges of the metrics: how things stand when they are asked for.

/// A function that reads the gauges each time it is called.
pub(super) fn gauge_reader(
    live: &LiveSnapshot,
    store: &Arc<AnyStore>,
    connections: &Connections,
    held_requests: &HeldRequests,
    lists: &Arc<ArcSwap<OpenLists>>,
    snapshot_writer: &Arc<SnapshotWriter>,
    sinks: &Sinks,
) -> Box<dyn Fn() -> Gauges + Send + Sync> {
    let (live, store, connections, held_requests, lists, snapshot_writer, sinks) = (
        live.shared(),
        Arc::clone(store),
        connections.clone(),
        held_requests.clone(),
        Arc::clone(lists),
        Arc::clone(snapshot_writer),
        sinks.clone(),
    );
    Box::new(move || {
        let faults = faults(&store, &connections, &snapshot_writer, &sinks);
        Gauges { faults, ..gauges(&live.load(), &store, &connections, &held_requests, &lists.load(), &sinks) }
    })
}

fn gauges(
    snapshot: &Snapshot,
    store: &AnyStore,
    connections: &Connections,
    held_requests: &HeldRequests,
    lists: &OpenLists,
    sinks: &Sinks,
) -> Gauges {
    let (kind, is_up, keys, part) = match store {
        // The memory of this process is always up, and grants the whole.
        AnyStore::Memory(memory) => (store::MEMORY, true, memory.len(), None),
        AnyStore::Shared(shared) => {
            let redis = shared.shared();
            let keys = usize::try_from(redis.keys()).unwrap_or(usize::MAX);
            (store::REDIS, redis.status().up, keys, Some(redis.part().as_fraction()))
        }
    };
    let servers = snapshot.upstreams.iter().flat_map(|upstream| {
        let name = &upstream.settings().name;
        upstream.settings().servers.iter().map(move |server| {
            let server = server.name();
            (Arc::clone(name), Arc::from(server), upstream.is_well(server))
        })
    });
    Gauges {
        connections: connections.count(),
        rejected_connections: connections.rejected(),
        held: held_requests.count(),
        bans: store.bans().count(),
        sessions: store.sessions().count(),
        store: kind,
        store_up: is_up,
        store_keys: keys,
        store_part: part,
        servers: servers.collect(),
        routes: Arc::clone(snapshot.recorder.shown_routes()),
        lists: lists.gauges(),
        dropped_lines: sinks.dropped_lines(),
        gateway: sinks.gateway_name().get(),
        verdict: Vec::new(),
        lockdowns: Vec::new(),
        certificates: Vec::new(),
        faults: Vec::new(),
    }
}

/// For so long it is said that new connections had to wait.
const SHORTAGE_HOLDS: Duration = Duration::from_secs(60);

/// What does not work although requests are served.
fn faults(store: &AnyStore, connections: &Connections, snapshot_writer: &SnapshotWriter, sinks: &Sinks) -> Vec<Fault> {
    let now = clock::wall();
    let mut faults = sinks.faults(now);
    faults.extend(snapshot_writer.failure().map(|SnapshotFailure { path, why, since }| {
        let path = path.display();
        let sentence = format!(
            "The snapshot cannot be written to {path}: {why}. A restart would lose bans, known clients and sessions."
        );
        Fault { about: "snapshot", sentence, since }
    }));
    let shortage = connections.last_shortage().filter(|(_, ago)| *ago < SHORTAGE_HOLDS);
    faults.extend(shortage.map(|(why, ago)| {
        let sentence = format!("New connections had to wait within the last minute: {why}.");
        Fault { about: "connections", sentence, since: now.earlier_by(ago) }
    }));
    if let AnyStore::Shared(shared) = store {
        faults.extend(shared.shared().evictions().into_iter().map(|Eviction { server, policy, since }| {
            let sentence = format!(
                "Redis {server} has `maxmemory-policy {policy}`: when its memory is short it drops counters, and limits let too \
                 many requests pass."
            );
            Fault { about: "redis", sentence, since }
        }));
    }
    faults
}

// Gathers what advice is judged from.

/// How far back the busiest client is looked for.
const MINUTES: u64 = 10;

/// Everything that advice is judged from, under the names in force.
fn observe(live: &Snapshot, store: &AnyStore, sinks: &Sinks, now: Timestamp) -> Observed {
    let (policy, metrics) = (&live.policy, sinks.metrics());
    let routes = policy.routes.all().iter().filter(|route| route.outcome.is_some());
    let totals = metrics.history().totals();
    let limits = (0..).map(LimitId).zip(&policy.limits).zip(routes_of_limits(policy));
    let unlimited_logins = live.recorder.unlimited_logins().found();
    let all_routes = (0..).map(RouteId).map(Some).zip(policy.routes.all().iter().map(Some));
    Observed {
        passed: totals.passed,
        untrusted_forwarding: metrics.untrusted_forwarding().requests(),
        untrusted_peers: metrics.untrusted_forwarding().take_peers(),
        busiest_client: busiest_client(sinks, &live.clients, now),
        limits: limits.map(|(limit, routes)| observed_limit(live, limit, &routes, &totals, metrics)).collect(),
        routes: routes.map(|route| observed_route(&route.name, metrics)).collect(),
        unseen: all_routes
            .chain([(None, None)])
            .filter(|(id, _)| live.recorder.has_unseen_answers(*id))
            .filter_map(|(_, route)| unseen_route(policy, route))
            .collect(),
        near_paths: near_paths(live, &totals, &unlimited_logins),
        unlimited_logins,
        unavailable_keys: unavailable_keys(live),
        turned_away: turned_away(store),
    }
}

/// Other advice tells of logins.
fn near_paths(live: &Snapshot, totals: &Totals, logins: &[UnlimitedLogin]) -> Vec<NearPath> {
    let is_asked = |route: &Route| {
        totals.route(&route.name) > 0
            || route.limits.iter().any(|limit| totals.limit(&live.policy.limit(*limit).name) > 0)
    };
    let mut near = live.recorder.near_paths().found(&live.policy, is_asked);
    near.retain(|near| !logins.iter().any(|login| login.path.eq_ignore_ascii_case(&near.path)));
    near
}

fn unavailable_keys(live: &Snapshot) -> Option<UnavailableKeys> {
    let keys = live.tokens.as_ref()?.keys();
    let KeyFailure { source, reason } = (*keys.failure()?).clone();
    Some(UnavailableKeys { source, reason, are_known: keys.set().is_some() })
}

/// By `LimitId` the routes that a limit stands on.
fn routes_of_limits(policy: &Policy) -> Vec<Vec<(RouteId, &Route)>> {
    let mut routes = vec![Vec::new(); policy.limits.len()];
    for (id, route) in (0..).map(RouteId).zip(policy.routes.all()) {
        for limit in &route.limits {
            routes[usize::from(limit.0)].push((id, route));
        }
    }
    routes
}

/// `own`: the routes that it stands on.
fn observed_limit(
    live: &Snapshot,
    (id, limit): (LimitId, &Limit),
    own: &[(RouteId, &Route)],
    totals: &Totals,
    metrics: &Metrics,
) -> ObservedLimit {
    let policy = &live.policy;
    let stands_everywhere = policy.everywhere.contains(&id);
    let routes: Vec<&Route> = own.iter().filter(|_| !stands_everywhere).map(|(_, route)| *route).collect();
    let mut others = routes.iter().flat_map(|route| &route.limits).map(|&other| policy.limit(other));
    let is_replaced = others.any(|other| other.descriptors.replaces.contains(&limit.name));
    let is_own = |route: &Route| routes.iter().any(|own| own.name == route.name);
    let mut other_routes = policy.routes.all().iter().filter(|route| !route.limits.is_empty() && !is_own(route));
    ObservedLimit {
        name: limit.name.to_string(),
        key: limit.key.parts.iter().map(|part| name_of(&part.selector)).collect(),
        login_field: login_field(limit),
        missing: limit.missing,
        spares_some: limit.unless_known
            || !limit.unless.is_empty()
            || !limit.descriptors.except.is_empty()
            || is_replaced,
        routes: routes.iter().map(|route| route.name.to_string()).collect(),
        domain: routes.iter().find_map(|route| route.domain.as_deref()).map(str::to_owned),
        waits_for_rare_requests: is_left_out(live, limit, own.iter().map(|(id, _)| *id), stands_everywhere)
            || !routes.is_empty() && routes.iter().all(|route| waits_for_rare_requests(route, limit, totals)),
        passed: if stands_everywhere {
            totals.passed
        } else {
            routes.iter().map(|route| totals.route(&route.name)).sum()
        },
        others_are_met: other_routes.any(|route| totals.route(&route.name) > 0),
        decided: totals.limit(&limit.name),
        lacking: metrics.found_key(&limit.name, FoundKey::Lacking),
        pattern: limit.key.parts.iter().chain(&limit.distinct).find_map(pattern).map(str::to_owned),
        unmatched: metrics.found_key(&limit.name, FoundKey::Unmatched),
    }
}

fn pattern(part: &KeyPart) -> Option<&str> {
    let Spelling::Name(name) = &part.spelling else { return None };
    name.pattern.as_ref().map(NamePattern::as_str)
}

/// Whether a limit on concurrent requests counts none that a proxy asks about, which other advice says.
fn is_left_out(
    live: &Snapshot,
    limit: &Limit,
    mut own: impl Iterator<Item = RouteId>,
    stands_everywhere: bool,
) -> bool {
    let is_unseen = |route| live.recorder.has_unseen_answers(route);
    if !matches!(limit.rule, Rule::Concurrent(_)) {
        return false;
    }
    if !stands_everywhere {
        return own.any(|id| is_unseen(Some(id)));
    }
    let all = (0..).map(RouteId).zip(live.policy.routes.all()).map(|(id, _)| Some(id));
    all.chain([None]).any(is_unseen)
}

/// Whether a limit is only for requests with something that an ordinary one may lack: its route waits for them, or it chooses
/// among descriptors by their values. In a domain no limit on concurrent requests counts anything.
fn waits_for_rare_requests(Route { name, condition, domain, .. }: &Route, limit: &Limit, totals: &Totals) -> bool {
    !limit.descriptors.values.is_empty()
        // No proxy has asked about the domain yet.
        || domain.is_some() && (totals.route(name) == 0 || matches!(limit.rule, Rule::Concurrent(_)))
        || !condition.headers.is_empty()
        || !condition.queries.is_empty()
        || !condition.cookies.is_empty()
        || !condition.client.is_empty()
}

fn observed_route(name: &str, metrics: &Metrics) -> ObservedRoute {
    let [success, failure, neither] =
        ["success", "failure", "neither"].map(|outcome| metrics.outcomes_so_far(name, outcome));
    ObservedRoute { name: name.to_owned(), answers: success + failure + neither, neither }
}

/// The rules of a route that need answers or ends of requests, which a proxy that only asks does not show; `None`:
/// there are none. Without a route: of requests that match none.
fn unseen_route(policy: &Policy, route: Option<&Route>) -> Option<UnseenRoute> {
    let own = route.map(|route| &route.limits[..]).unwrap_or_default();
    let is_of_domain = route.is_some_and(|route| route.domain.is_some());
    let everywhere = if is_of_domain { &[][..] } else { &policy.everywhere };
    let limits = everywhere.iter().chain(own).map(|&id| policy.limit(id));
    let named = |limits: &mut dyn Iterator<Item = &Limit>| limits.map(|limit| limit.name.to_string()).collect();
    let has_outcome = route.is_some_and(|route| route.outcome.is_some());
    let waits = |limit: &&Limit| has_outcome && (limit.count.outcome().is_some() || limit.reset_on.is_some());
    let unseen = UnseenRoute {
        name: route.map_or_else(|| "no route".to_owned(), |route| route.name.to_string()),
        waiting: named(&mut limits.clone().filter(waits)),
        concurrent: named(&mut limits.filter(|limit| matches!(limit.rule, Rule::Concurrent(_)))),
        knows_clients: route.is_some_and(|route| route.known_clients.is_some()),
        learns_sessions: route.is_some_and(|route| route.sessions.is_some()),
        is_of_domain,
    };
    let needs_more = !unseen.waiting.is_empty() || !unseen.concurrent.is_empty();
    let needs_more = needs_more || unseen.knows_clients || unseen.learns_sessions;
    needs_more.then_some(unseen)
}

/// The client with the most requests in the last minutes.
fn busiest_client(sinks: &Sinks, proxies: &TrustedProxies, now: Timestamp) -> Option<BusiestClient> {
    let report = sinks.metrics().history().report(MINUTES, now);
    let all = report.routes.values().flat_map(BTreeMap::values).flatten().sum();
    let busiest = sinks.key_tables().clients().counts(MINUTES, now).busiest(Order::Requests, 1);
    let busiest = busiest.first()?;
    let client = busiest.key.parts.first()?.value.clone();
    let is_trusted_proxy = client.parse().is_ok_and(|address| proxies.trusts(ClientIp::new(address)));
    Some(BusiestClient { client, is_trusted_proxy, requests: busiest.requests.min(all), all })
}

/// The login field of a key in which nothing else can be missing.
fn login_field(limit: &Limit) -> Option<String> {
    let mut may_lack = limit.key.parts.iter().map(|part| &part.selector).filter(|selector| {
        let is_there = |one: &Selector| one.is_never_missing() || *one == Selector::Route;
        !selector.choices().any(is_there)
    });
    let (field, None) = (may_lack.next()?, may_lack.next()) else { return None };
    field.is_login_name().then(|| name_of(field))
}
