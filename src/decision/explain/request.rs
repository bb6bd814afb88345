//! Explains the first two steps of the decision.

use std::ops::ControlFlow;

use super::AccessExplanation;
use super::Asker;
use super::ExplainedTokens;
use super::Explanation;
use super::LimitExplanation;
use super::ListExplanation;
use super::RouteExplanation;
use super::RouteMatch;
use super::answers::AnswerRules;
use super::answers::looked_up;
use super::limit::explain_limit;
use crate::decision::Policy;
use crate::decision::RoutedRequest;
use crate::decision::enter;
use crate::decision::enter::Admission;
use crate::decision::enter::with_body_methods;
use crate::decision::policy::PolicyList;
use crate::decision::source::with_source;
use crate::key::Source;
use crate::list::ListId;
use crate::request::BodyFields;
use crate::request::RequestHead;
use crate::route::Certainty;
use crate::route::RequestReadings;
use crate::route::Route;
use crate::route::UpstreamId;

/// All rules that a request with these fields would meet. `upstream` names upstreams.
pub fn explain(
    policy: &Policy,
    head: &RequestHead<'_>,
    fields: &BodyFields,
    tokens: &ExplainedTokens,
    asker: Asker,
    upstream: impl FnOnce(UpstreamId) -> String,
) -> Explanation {
    let entry = enter(policy, head).with_claims(&tokens.claims);
    let reads_body = entry.needs_body();
    let entry = entry.with_body(fields);
    let walk = &entry.walk;
    let denied = denied(&entry);
    let limits_decide = denied.is_none() && entry.admission == Admission::Ordinary;
    let name = |list: ListId| policy.list(list).list.name.to_string();
    let answers = AnswerRules::of(policy, walk);
    let (lists, limits, known_clients, sign_in) = with_source(policy, head, fields, walk, entry.identity, |source| {
        let mut limits: Vec<LimitExplanation> = Vec::new();
        let _: ControlFlow<()> = policy.each_applicable(&walk.collected, |limit| {
            limits.push(explain_limit(policy, limit, source, limits_decide, answers.are_read(), asker));
            ControlFlow::Continue(())
        });
        (lists(policy, source), limits, answers.known_clients(source), answers.sign_in(source))
    });
    let (denied, limits) = match limits.iter().find(|limit| limit.refuses()) {
        Some(limit) => (Some(too_many_values(limit)), limits.iter().map(LimitExplanation::not_asked).collect()),
        None => (denied, limits),
    };
    let route = entry.route().map(|route| policy.routes.get(route));
    Explanation {
        asker,
        client: head.client.address(),
        method: head.method.to_string(),
        host: head.host.as_str().to_owned(),
        path: head.path.canonical().cased().to_owned(),
        readings: (!head.path.may_be_any())
            .then(|| head.path.readings().iter().map(|reading| reading.cased().to_owned()).collect()),
        lists,
        access: match entry.admission {
            // An explanation knows neither bans, which are in the store, nor what other systems decide.
            Admission::Ordinary | Admission::Banned | Admission::Challenged(_) => AccessExplanation::Ordinary,
            Admission::Allowed(list) => AccessExplanation::Allowed(name(list)),
            Admission::Denied(list) => AccessExplanation::Denied(name(list)),
        },
        routes: routes(&entry, fields),
        route: route.map(|route| route.name.to_string()),
        tokens: tokens.tokens.clone(),
        upstream: upstream(route.map_or(policy.upstream, |route| route.upstream)),
        reads_body,
        unread: fields.not_understood().filter(|_| reads_body),
        misses_body: false,
        outcome: answers.outcome(),
        known_clients,
        sign_in,
        sessions: looked_up(policy),
        denied,
        limits,
    }
}

fn denied(entry: &RoutedRequest<'_, '_>) -> Option<String> {
    match entry.admission {
        Admission::Denied(list) => Some(format!("the list {} is denied", entry.policy.list(list).list.name)),
        _ if entry.bars() => Some("the client is on none of the lists in `only`".to_owned()),
        _ => None,
    }
}

/// Before any limit is asked, the request is answered with 400.
fn too_many_values(limit: &LimitExplanation) -> String {
    format!("400, a field was sent too often for the limit {} to count it", limit.name)
}

fn lists(policy: &Policy, source: &Source<'_>) -> Vec<ListExplanation> {
    let ids = (0..).map(ListId).zip(&policy.lists);
    let story = |(id, list): (ListId, &PolicyList)| ListExplanation {
        name: list.list.name.to_string(),
        of: list.of.as_ref().map_or_else(|| "client_ip".to_owned(), |part| part.selector.to_string()),
        holds: policy.membership(id, source),
    };
    ids.map(story).collect()
}

fn routes(entry: &RoutedRequest<'_, '_>, fields: &BodyFields) -> Vec<RouteExplanation> {
    let RoutedRequest { policy, head, walk, identity, .. } = entry;
    let source = Source { identity: *identity, ..Source::new(head, BodyFields::NONE) };
    let membership = |list| policy.membership(list, &source);
    let bars = |lists: &Vec<ListId>| {
        with_source(policy, head, BodyFields::NONE, walk, *identity, |source| policy.holding(lists, source).is_none())
    };
    with_body_methods(head, fields, |methods| {
        let mut readings = RequestReadings::new(head, methods, &membership);
        let mut decided = false;
        let story = |route: &Route| {
            let judged = if decided { None } else { Some(route.condition.judge(&mut readings)) };
            decided |= matches!(judged, Some(Ok(Certainty::Surely)));
            let (matches, reason) = match judged {
                None => (RouteMatch::NotTried, None),
                Some(Err(mismatch)) => (RouteMatch::No, Some(mismatch.describe(head))),
                Some(Ok(Certainty::Possibly)) => (RouteMatch::Possibly, None),
                Some(Ok(Certainty::Plainly)) => (RouteMatch::Plainly, None),
                Some(Ok(Certainty::Surely)) => (RouteMatch::Surely, None),
            };
            let taken = !matches!(matches, RouteMatch::No | RouteMatch::NotTried);
            let only = route.only.as_ref().filter(|_| taken);
            RouteExplanation { name: route.name.to_string(), matches, reason, bars: only.is_some_and(bars) }
        };
        let stories: Vec<_> = policy.routes.of_requests().iter().map(story).collect();
        debug_assert_eq!(
            stories.iter().filter(|route| !matches!(route.matches, RouteMatch::No | RouteMatch::NotTried)).count(),
            walk.collected.len(),
            "the explanation tells what is decided"
        );
        stories
    })
}
