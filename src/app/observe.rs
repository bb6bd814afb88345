//! Gathers what advice is judged from.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::decision::Policy;
use crate::key::Selector;
use crate::key::operator::name_of;
use crate::limit::Limit;
use crate::record::Metrics;
use crate::record::Sinks;
use crate::record::advice::Observed;
use crate::record::advice::ObservedLimit;
use crate::record::advice::ObservedRoute;
use crate::record::heavy_keys::Order;

/// Everything that advice is judged from, under the names in force.
pub(super) fn observe(policy: &Policy, sinks: &Sinks, now: Timestamp) -> Observed {
    let metrics = sinks.metrics();
    let routes = policy.routes.routes.iter().filter(|route| route.outcome.is_some());
    let totals = metrics.history().totals();
    Observed {
        passed: totals.passed,
        untrusted_forwarding: metrics.untrusted_forwarding(),
        busiest_client: busiest_client(sinks, now),
        limits: policy.limits.iter().map(|limit| observed_limit(limit, totals.limit(&limit.name), metrics)).collect(),
        routes: routes.map(|route| observed_route(&route.name, metrics)).collect(),
    }
}

fn observed_limit(limit: &Limit, decided: u64, metrics: &Metrics) -> ObservedLimit {
    ObservedLimit {
        name: limit.name.to_string(),
        login_field: login_field(limit),
        decided,
        lacking: metrics.lacking_part(&limit.name),
    }
}

fn observed_route(name: &str, metrics: &Metrics) -> ObservedRoute {
    let [success, failure, neither] =
        ["success", "failure", "neither"].map(|outcome| metrics.outcomes_so_far(name, outcome));
    ObservedRoute { name: name.to_owned(), answers: success + failure + neither, neither }
}

/// The client with the most requests in the last minutes, how many they were, and how many all sent.
fn busiest_client(sinks: &Sinks, now: Timestamp) -> Option<(String, u64, u64)> {
    let report = sinks.metrics().history().report(MINUTES, now);
    let all = report.routes.values().flat_map(BTreeMap::values).flatten().sum();
    let busiest = sinks.key_tables().clients().counts(MINUTES, now).busiest(Order::Requests, 1);
    let busiest = busiest.first()?;
    let client = busiest.key.parts.first()?.value.clone();
    Some((client, busiest.requests.min(all), all))
}

/// The login field of a key in which nothing else can be missing.
fn login_field(limit: &Limit) -> Option<String> {
    let mut may_lack = limit.key.parts.iter().map(|part| &part.selector).filter(|selector| {
        !matches!(
            selector,
            Selector::ClientIp(_)
                | Selector::Device
                | Selector::Host
                | Selector::Method
                | Selector::Path
                | Selector::Route
        )
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
