//! Explains the first two steps of the decision.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;

use super::limit::explain_limit;
use super::{
    AccessExplanation, Asker, Elsewhere, Explanation, LimitExplanation, ListExplanation, RouteExplanation, RouteMatch,
};
use crate::rules::decision::enter::{AccessDecision, with_body_methods};
use crate::rules::decision::explain::limit::{AnswerRules, looked_up};
use crate::rules::decision::plan::with_source;
use crate::rules::decision::policy::PolicyList;
use crate::rules::decision::{Policy, RoutedRequest, enter};
use crate::rules::jwt;
use crate::rules::jwt::{KeySet, RequestClaims, TokenPlace, Validity};
use crate::rules::key::ValueSource;
use crate::rules::list::ListId;
use crate::rules::request::{BodyFields, CanonicalHead, CanonicalPath};
use crate::rules::route::{Certainty, RequestReadings, Route, UpstreamId};
use crate::wire::head::Fields;
use crate::words::clock::Timestamp;
use crate::words::recipes::{Recipe, prefixes};

/// All rules that a request with these fields would meet. `upstream` names upstreams.
pub fn explain(
    policy: &Policy,
    head: &CanonicalHead<'_>,
    fields: &BodyFields,
    tokens: &ExplainedTokens,
    asker: Asker,
    upstream: impl FnOnce(UpstreamId) -> String,
) -> Explanation {
    let mut entry = enter(policy, head);
    entry.set_claims(&tokens.claims);
    let reads_body = entry.needs_body();
    entry.add_body(fields);
    let walk = &entry.walk;
    let denied = denied(&entry);
    let limits_decide = denied.is_none() && entry.access == AccessDecision::Ordinary;
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
        access: match entry.access {
            // Bans are in the store and the decisions of other systems come later: an explanation has neither.
            AccessDecision::Ordinary | AccessDecision::Banned | AccessDecision::Challenged(_) => {
                AccessExplanation::Ordinary
            }
            AccessDecision::Allowed(list) => AccessExplanation::Allowed(name(list)),
            AccessDecision::Denied(list) => AccessExplanation::Denied(name(list)),
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
        elsewhere: None,
        denied,
        limits,
    }
}

fn denied(entry: &RoutedRequest<'_, '_>) -> Option<String> {
    match entry.access {
        AccessDecision::Denied(list) => Some(format!("the list {} is denied", entry.policy.list(list).list.name)),
        _ if entry.is_denied_by_only() => Some("the client is on none of the lists in `only`".to_owned()),
        _ => None,
    }
}

/// Before any limit is asked, the request is answered with 400.
fn too_many_values(limit: &LimitExplanation) -> String {
    format!("400, a field was sent too often for the limit {} to count it", limit.name)
}

fn lists(policy: &Policy, source: &ValueSource<'_>) -> Vec<ListExplanation> {
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
    let source = ValueSource { identity: *identity, ..ValueSource::new(head, BodyFields::NONE) };
    let membership = |list| policy.membership(list, &source);
    let denies = |lists: &Vec<ListId>| {
        with_source(policy, head, BodyFields::NONE, walk, *identity, |source| {
            policy.list_with_all_values(lists, source).is_none()
        })
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
            RouteExplanation { name: route.name.to_string(), matches, reason, denied_by_only: only.is_some_and(denies) }
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

// The tokens of a request: which verify, and why the others do not.

/// The claims that the tokens of a request prove.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExplainedTokens {
    pub claims: RequestClaims,
    /// Each, in the order in which they stand.
    pub tokens: Vec<TokenExplanation>,
}

/// Whether a token verifies.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct TokenExplanation {
    /// `bearer`, or the cookie or header that it stands in.
    pub place: String,
    pub verified: bool,
    /// Why it does not verify.
    pub reason: Option<String>,
}

impl ExplainedTokens {
    /// `keys` are those of a file, or the URL that they would have to be fetched from. `now` is by the wall clock.
    pub fn of(
        place: &TokenPlace,
        validity: &Validity,
        keys: Result<&KeySet, &str>,
        fields: &Fields,
        now: Timestamp,
    ) -> Self {
        let mut tokens = Vec::new();
        let claims = RequestClaims::of(&place.presented(fields), |token| {
            let verified = match &keys {
                Ok(keys) => jwt::verify(token, keys, validity, now),
                Err(_) => Err(jwt::verify_without_keys(token)),
            };
            let reason = verified.as_ref().err().map(|reason| match (reason, &keys) {
                (jwt::Unverified::NoKeys, Err(url)) => {
                    format!("its keys are not fetched from {url} to explain a request")
                }
                (reason, _) => reason.to_string(),
            });
            tokens.push(TokenExplanation { place: place.to_string(), verified: reason.is_none(), reason });
            verified.map(Arc::new)
        });
        Self { claims, tokens }
    }
}

impl fmt::Display for TokenExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            None => write!(f, "{}: verified", self.place),
            Some(reason) => write!(f, "{}: not verified, {reason}", self.place),
        }
    }
}

// The route that a request would take if its application stood under another prefix.

/// In segments. No application stands deeper.
const DEEPEST: usize = 8;

/// Where a login with this path, as it was sent, stands in the configuration or in a recipe. `None`: the request meets a limit
/// that counts logins, or it is like no login.
pub fn elsewhere(policy: &Policy, explanation: &Explanation, sent_path: &str) -> Option<Elsewhere> {
    if explanation.limits.iter().any(LimitExplanation::counts_logins) {
        return None;
    }
    let path = &*explanation.path;
    let recipe = Recipe::command_for(sent_path);
    let routes = policy.routes.of_requests().iter();
    let routes = routes.filter(|route| {
        let is_taken = explanation.route.as_deref() == Some(&*route.name);
        !is_taken && (!route.limits.is_empty() || route.only.is_some()) && has_method(route, &explanation.method)
    });
    let found = routes.filter_map(|route| Some((route, moved(route, path)?)));
    if let Some((route, Moved { from, pattern })) = found.min_by_key(|(_, moved)| moved.pattern.len()) {
        let below = if from.is_empty() { "/".to_owned() } else { from };
        let recipe = recipe.map(|command| format!(", or begin with `{command}`")).unwrap_or_default();
        let methods = route.condition.methods.as_ref().map(|_| format!("{} ", explanation.method)).unwrap_or_default();
        let help = format!("write `match: {methods}{pattern}`{recipe}");
        return Some(Elsewhere { route: Some(route.name.to_string()), matches_below: Some(below), help });
    }
    // A route with limits of another kind is for it already.
    let is_login = explanation.method == "POST" && explanation.limits.is_empty();
    let command = recipe.filter(|_| is_login)?;
    let help = format!("`{command}` prints routes and limits");
    Some(Elsewhere { route: None, matches_below: None, help })
}

fn has_method(route: &Route, method: &str) -> bool {
    route.condition.methods.as_ref().is_none_or(|methods| methods.contains(method))
}

/// How the path of a route would have to be moved.
struct Moved {
    /// The prefix that it has now.
    from: String,
    /// The pattern that would match.
    pattern: String,
}

/// `None`: the path of the route is not that of the request under any other prefix.
fn moved(route: &Route, path: &str) -> Option<Moved> {
    let pattern = route.condition.path.as_ref()?;
    let text = pattern.to_string();
    // Any path is below the root.
    if text == "/*" || text == "/" {
        return None;
    }
    if let Some((from, _)) = prefixes(&text, path).filter(|(from, _)| !from.is_empty()) {
        return Some(Moved { from: from.to_owned(), pattern: path.to_owned() });
    }
    let slashes = path.match_indices('/').skip(1).take(DEEPEST);
    let mut cuts = slashes.map(|(at, _)| path.split_at(at));
    let (prefix, _) = cuts.find(|(_, rest)| pattern.matches(&CanonicalPath::new(rest)))?;
    Some(Moved { from: String::new(), pattern: format!("{prefix}{text}") })
}
