//! The first two steps told to a person: which client, lists, route, limits and keys a request meets, and why.

mod answers;
mod part;
mod text;

use std::net::IpAddr;

use serde::Serialize;

use super::Policy;
use super::RoutedRequest;
use super::enter;
use super::enter::Admission;
use super::enter::with_body_methods;
use super::plan::LimitApplication;
use super::plan::apply;
use super::source::with_source;
use crate::key::Source;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rule;
use crate::list::ListId;
use crate::list::Membership;
use crate::outcome::Outcome;
use crate::request::BodyFields;
use crate::request::RequestHead;
use crate::route::Certainty;
use crate::route::RequestReadings;
use crate::route::UpstreamId;

pub use self::answers::KnownClientsExplanation;
pub use self::answers::OutcomeExplanation;
pub use self::part::KeyPartExplanation;

use self::part::explain_part;

/// Everything a request would meet. Prints as text for people. Values of keys stand in clear: it is made for an
/// operator about a request that the operator wrote.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Explanation {
    pub client: IpAddr,
    pub method: String,
    /// In canonical form, as is the path.
    pub host: String,
    pub path: String,
    /// What else applications may take the path for; `None`: for any.
    pub readings: Option<Vec<String>>,
    /// Every list of the configuration.
    pub lists: Vec<ListExplanation>,
    pub access: AccessExplanation,
    /// Every route, in the order they are tried.
    pub routes: Vec<RouteExplanation>,
    /// The route the request goes by; `None`: the default upstream.
    pub route: Option<String>,
    pub upstream: String,
    /// Whether the body is read before anything is decided.
    pub reads_body: bool,
    /// What the application's answer would mean; `None`: nobody asks.
    pub outcome: Option<OutcomeExplanation>,
    /// What clients are known for where the request goes.
    pub known_clients: Option<KnownClientsExplanation>,
    /// What denies the request before any limit is asked.
    pub denied: Option<String>,
    /// Every limit that stands where the request goes.
    pub limits: Vec<LimitExplanation>,
}

/// What the lists of `access` say.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessExplanation {
    Ordinary,
    /// By this list: no limit holds.
    Allowed(String),
    /// By this list.
    Denied(String),
}

/// How a request stands to one list.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ListExplanation {
    pub name: String,
    /// What of a request is looked up in it.
    pub of: String,
    pub holds: ListMembership,
}

/// Which of the values that a request presents are in a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListMembership {
    None,
    Some,
    All,
}

/// What became of one route.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RouteExplanation {
    pub name: String,
    pub matches: RouteMatch,
    /// Why it does not match.
    pub reason: Option<String>,
    /// Whether it is for members of other lists only.
    pub bars: bool,
}

/// How surely a route matches.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteMatch {
    /// However the application reads the request.
    Surely,
    /// As the request is written; an override or a repeated value may say otherwise.
    Plainly,
    /// Only if the application takes an override or one of repeated values.
    Possibly,
    No,
    /// An earlier one matched.
    NotTried,
}

/// What one limit makes of the request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LimitExplanation {
    pub name: String,
    /// `10/minute; 100/hour`, `10/minute, each costs 2`, or `20 in flight`.
    pub rule: String,
    /// `None` for a bound on what is in flight.
    pub algorithm: Option<&'static str>,
    /// `requests`, `attempts`, `failures` or `successes`.
    pub count: &'static str,
    /// What different values are counted of.
    pub distinct: Option<KeyPartExplanation>,
    /// The answer that forgets what was counted.
    pub reset_on: Option<&'static str>,
    /// Whether it holds for clients that are known.
    pub unless_known: bool,
    /// `deny`, `delay 20s`, `tarpit 20s`, `ban 15m, 1h, 24h` or `challenge`.
    pub then: String,
    pub shadow: bool,
    pub outcome: LimitOutcome,
    /// The parts of the key with their values; none is one key for all.
    pub key: Vec<KeyPartExplanation>,
}

/// Whether a limit counts the request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitOutcome {
    /// Under so many keys.
    Counted(usize),
    /// Its `unless` names this list.
    Freed(String),
    /// A part of the key is missing: `missing: skip`.
    Skipped,
    /// A part of the key is missing: `missing: deny`.
    Denied,
    /// It counts by answers, and nothing says what they mean where the request goes.
    Unanswered,
    /// A field was sent too often: 400.
    TooManyValues,
    /// The client is on a list of `access.allow`, or denied before.
    NotAsked,
}

/// What a request with these fields would meet. `upstream` names upstreams.
pub fn explain(
    policy: &Policy,
    head: &RequestHead<'_>,
    fields: &BodyFields,
    upstream: impl FnOnce(UpstreamId) -> String,
) -> Explanation {
    let entry = enter(policy, head);
    let reads_body = entry.needs_body();
    let entry = entry.with_body(fields);
    let walk = &entry.walk;
    let denied = denied(&entry);
    let asked = denied.is_none() && entry.admission == Admission::Ordinary;
    let name = |list: ListId| policy.list(list).list.name.to_string();
    let answers = answers::AnswerRules::of(policy, walk);
    let (lists, limits, known_clients) = with_source(policy, head, fields, walk, |source| {
        let limits = policy.applicable(&walk.collected).into_iter();
        let limits = limits.map(|limit| explain_limit(policy, limit, source, asked, answers.are_read()));
        (lists(policy, source), limits.collect(), answers.known_clients(source))
    });
    let route = entry.route().map(|route| policy.routes.get(route));
    Explanation {
        client: head.client.address(),
        method: head.method.to_string(),
        host: head.host.as_str().to_owned(),
        path: head.path.canonical().cased().to_owned(),
        readings: (!head.path.may_be_any())
            .then(|| head.path.readings().iter().map(|reading| reading.cased().to_owned()).collect()),
        lists,
        access: match entry.admission {
            // What is written asks nobody who is banned.
            Admission::Ordinary | Admission::Banned => AccessExplanation::Ordinary,
            Admission::Allowed(list) => AccessExplanation::Allowed(name(list)),
            Admission::Refused(list) => AccessExplanation::Denied(name(list)),
        },
        routes: routes(&entry, fields),
        route: route.map(|route| route.name.to_string()),
        upstream: upstream(route.map_or(policy.upstream, |route| route.upstream)),
        reads_body,
        outcome: answers.outcome(),
        known_clients,
        denied,
        limits,
    }
}

fn denied(entry: &RoutedRequest<'_, '_>) -> Option<String> {
    match entry.admission {
        Admission::Refused(list) => Some(format!("the list {} is denied", entry.policy.list(list).list.name)),
        _ if entry.bars() => Some("the client is on none of the lists in `only`".to_owned()),
        _ => None,
    }
}

fn lists(policy: &Policy, source: &Source<'_>) -> Vec<ListExplanation> {
    let ids = (0..).map(ListId).zip(&policy.lists);
    let story = |(id, list): (ListId, &super::policy::PolicyList)| ListExplanation {
        name: list.list.name.to_string(),
        of: list.of.as_ref().map_or_else(|| "client_ip".to_owned(), |part| part.selector.to_string()),
        holds: match policy.membership(id, source) {
            Membership::None => ListMembership::None,
            Membership::Some => ListMembership::Some,
            Membership::All => ListMembership::All,
        },
    };
    ids.map(story).collect()
}

fn routes(entry: &RoutedRequest<'_, '_>, fields: &BodyFields) -> Vec<RouteExplanation> {
    let RoutedRequest { policy, head, walk, .. } = entry;
    let nothing = BodyFields::none();
    let source = Source { head, fields: &nothing, routes: &[], captures: &[], device: None };
    let membership = |list| policy.membership(list, &source);
    let bars = |lists: &Vec<ListId>| {
        with_source(policy, head, &nothing, walk, |source| policy.holding(lists, source).is_none())
    };
    with_body_methods(head, fields, |methods| {
        let mut readings = RequestReadings::new(head, methods, &membership);
        let mut decided = false;
        let story = |route: &crate::route::Route| {
            let judged = if decided { None } else { Some(route.condition.judge(&mut readings)) };
            decided |= matches!(judged, Some(Ok(Certainty::Surely)));
            let (matches, reason) = match judged {
                None => (RouteMatch::NotTried, None),
                Some(Err(mismatch)) => (RouteMatch::No, Some(mismatch.told_of(head))),
                Some(Ok(Certainty::Possibly)) => (RouteMatch::Possibly, None),
                Some(Ok(Certainty::Plainly)) => (RouteMatch::Plainly, None),
                Some(Ok(Certainty::Surely)) => (RouteMatch::Surely, None),
            };
            let taken = !matches!(matches, RouteMatch::No | RouteMatch::NotTried);
            let only = route.only.as_ref().filter(|_| taken);
            RouteExplanation { name: route.name.to_string(), matches, reason, bars: only.is_some_and(bars) }
        };
        let stories: Vec<_> = policy.routes.routes.iter().map(story).collect();
        debug_assert_eq!(
            stories.iter().filter(|route| !matches!(route.matches, RouteMatch::No | RouteMatch::NotTried)).count(),
            walk.collected.len(),
            "told as it is decided"
        );
        stories
    })
}

fn explain_limit(policy: &Policy, id: LimitId, source: &Source<'_>, asked: bool, answers: bool) -> LimitExplanation {
    let limit = policy.limit(id);
    let outcome = match limit.count.outcome() {
        _ if !asked => LimitOutcome::NotAsked,
        Some(_) if !answers => LimitOutcome::Unanswered,
        _ => limit_outcome(policy, limit, source),
    };
    let (rule, algorithm) = match &limit.rule {
        Rule::Rates { algorithm, rates, cost } => {
            let cost = if cost.get() == 1 { String::new() } else { format!(", each costs {cost}") };
            (format!("{rates}{cost}"), Some(algorithm_name(*algorithm)))
        }
        Rule::Concurrent(most) => (format!("{most} in flight"), None),
        Rule::Distinct(rates) => (format!("{rates}, different values"), None),
    };
    LimitExplanation {
        name: limit.name.to_string(),
        rule,
        algorithm,
        count: match limit.count {
            Count::Requests => "requests",
            Count::Attempts => "attempts",
            Count::Failures => "failures",
            Count::Successes => "successes",
        },
        distinct: limit.distinct.as_ref().map(|part| explain_part(part, source)),
        reset_on: limit.reset_on.map(Outcome::as_str),
        unless_known: limit.unless_known,
        then: answers::action(&limit.then.action),
        shadow: limit.shadow,
        outcome,
        key: limit.key.parts.iter().map(|part| explain_part(part, source)).collect(),
    }
}

fn limit_outcome(policy: &Policy, limit: &Limit, source: &Source<'_>) -> LimitOutcome {
    match apply(policy, limit, source) {
        Ok(LimitApplication::Counted(keys)) => LimitOutcome::Counted(keys.len()),
        Ok(LimitApplication::Freed(list)) => LimitOutcome::Freed(policy.list(list).list.name.to_string()),
        Ok(LimitApplication::Skipped) => LimitOutcome::Skipped,
        Ok(LimitApplication::Refused) => LimitOutcome::Denied,
        Err(_) => LimitOutcome::TooManyValues,
    }
}

/// The word for an algorithm in the configuration.
pub fn algorithm_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::SlidingWindowLog => "sliding-window-log",
        Algorithm::SlidingWindowCounter => "sliding-window-counter",
        Algorithm::BucketedWindow { .. } => "bucketed-window",
        Algorithm::FixedWindow => "fixed-window",
        Algorithm::TokenBucket { .. } => "token-bucket",
    }
}
