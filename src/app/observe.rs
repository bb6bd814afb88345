//! Gathers what advice is judged from.

use std::collections::BTreeMap;

use crate::client::ClientIp;
use crate::client::TrustedProxies;
use crate::clock::Timestamp;
use crate::decision::FoundKey;
use crate::decision::Policy;
use crate::gateway::Snapshot;
use crate::gateway::tokens::live_keys::KeyFailure;
use crate::key::KeyPart;
use crate::key::NamePattern;
use crate::key::Selector;
use crate::key::Spelling;
use crate::key::operator::name_of;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rule;
use crate::record::Metrics;
use crate::record::Sinks;
use crate::record::advice::BusiestClient;
use crate::record::advice::Observed;
use crate::record::advice::ObservedLimit;
use crate::record::advice::ObservedRoute;
use crate::record::advice::UnavailableKeys;
use crate::record::advice::UnseenRoute;
use crate::record::heavy_keys::Order;
use crate::record::history::Totals;
use crate::route::Route;
use crate::route::RouteId;

/// Everything that advice is judged from, under the names in force.
pub(super) fn observe(live: &Snapshot, sinks: &Sinks, now: Timestamp) -> Observed {
    let (policy, metrics) = (&live.policy, sinks.metrics());
    let routes = policy.routes.all().iter().filter(|route| route.outcome.is_some());
    let totals = metrics.history().totals();
    let limits = (0..).map(LimitId).zip(&policy.limits).zip(routes_of_limits(policy));
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
            .filter(|(id, _)| live.recorder.is_unseen(*id))
            .filter_map(|(_, route)| unseen_route(policy, route))
            .collect(),
        unavailable_keys: unavailable_keys(live),
    }
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
    let is_unseen = |route| live.recorder.is_unseen(route);
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

/// What only answers and ends of requests can satisfy on a route that a proxy has asked about; `None`: nothing. Without a
/// route: of requests that match none.
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
    let is_login = matches!(
        field,
        Selector::Form(_) | Selector::Json(_) | Selector::Xml(_) | Selector::Param(_) | Selector::BasicUser
    );
    is_login.then(|| name_of(field))
}

/// How far back the busiest client is looked for.
const MINUTES: u64 = 10;
