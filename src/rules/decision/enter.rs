//! The first step: decides what the head of a request alone decides.
//!
//! Rules take precedence in this order: `access.allow` and `access.deny`, `only` of the routes, the ban of the client's
//! address, the challenge of a list. Limits decide last, and only about requests that none of these has decided.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{CarriedSessions, DenialCause, Policy};
use crate::rules::decision::known_client;
use crate::rules::decision::known_client::DeviceKeys;
use crate::rules::decision::plan::with_source;
use crate::rules::jwt::RequestClaims;
use crate::rules::key::{Identity, Key, KeyHash, KeyHasher, ValueSource};
use crate::rules::list::ListId;
use crate::rules::request::head::{body_may_hide_a_method, body_overrides};
use crate::rules::request::{BodyFields, CanonicalHead};
use crate::rules::route::{BodyMethods, RequestReadings, Route, RouteId, Walk};

/// A request whose lists and routes are known.
#[derive(Debug)]
pub struct RoutedRequest<'p, 'h> {
    pub(super) policy: &'p Policy,
    pub(super) head: &'h CanonicalHead<'h>,
    pub(super) access: AccessDecision,
    pub(super) device_keys: Option<DeviceKeys<'h>>,
    pub(super) sessions: Option<&'h CarriedSessions>,
    /// The account and claims that sessions and verified tokens prove.
    pub(super) identity: Identity<'h>,
    /// Whether the end of the request will be known, so that it can give its concurrency slots back.
    pub(super) is_end_seen: bool,
    /// Stands for a value that was not understood, where different values are counted. No two requests have the same.
    pub(super) nonce: u64,
    /// The routes that the request may be read as taking.
    pub(super) walk: Walk,
}

/// The decision of the lists of `access`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AccessDecision {
    Ordinary,
    /// No limit holds for it. `only` of a route still does.
    Allowed(ListId),
    Denied(ListId),
    /// Denied until the client has met a challenge. `only` and bans are checked before.
    Challenged(ListId),
    /// The address of the client is banned. `only` is checked before.
    Banned,
}

/// A challenge that a list wants a client to meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListChallenge {
    pub list: Arc<str>,
    /// Stands for the list and the client.
    pub key: KeyHash,
}

/// No limit has a name like this: names have no space.
const CHALLENGED: &str = "challenged clients";

/// Looks up the lists and the routes of a request.
pub fn enter<'p, 'h>(policy: &'p Policy, head: &'h CanonicalHead<'h>) -> RoutedRequest<'p, 'h> {
    let access = access_decision(policy, head);
    let walk = walk(policy, head, BodyMethods::Known(&[]));
    let identity = Identity::default();
    RoutedRequest {
        policy,
        head,
        access,
        device_keys: None,
        sessions: None,
        identity,
        is_end_seen: true,
        nonce: 0,
        walk,
    }
}

impl<'h> RoutedRequest<'_, 'h> {
    /// Verifies device cookies with these keys. `None`: no device is known.
    pub fn set_device_keys(&mut self, device_keys: Option<DeviceKeys<'h>>) {
        self.device_keys = device_keys;
    }

    /// Counts by the accounts of these sessions. `None`: nothing learns sessions.
    pub fn set_sessions(&mut self, sessions: Option<&'h CarriedSessions>) {
        self.identity.users = sessions.map_or(&[][..], CarriedSessions::users);
        self.identity.unread_users = sessions.and_then(CarriedSessions::unread);
        self.sessions = sessions;
    }

    /// Counts by the claims of the tokens that the request carries and that verify.
    pub fn set_claims(&mut self, claims: &'h RequestClaims) {
        self.identity.claims = claims;
    }

    /// Counts a value that was not understood as another one than in any other request. `nonce` is random.
    pub fn set_nonce(&mut self, nonce: u64) {
        self.nonce = nonce;
    }
}

impl RoutedRequest<'_, '_> {
    /// The address of the client is banned: that denies the request, unless a list of `access` has decided already.
    pub fn ban(&mut self) {
        if matches!(self.access, AccessDecision::Ordinary | AccessDecision::Challenged(_)) {
            self.access = AccessDecision::Banned;
        }
    }

    /// Leaves `concurrent` limits out: the end of the request will not be known, and its slot would stay taken.
    pub fn forgo_end(&mut self) {
        self.is_end_seen = false;
    }

    /// Whether a list denies the request until its client has solved a challenge.
    pub fn is_challenged(&self) -> bool {
        matches!(self.access, AccessDecision::Challenged(_))
    }

    /// The challenge that a list wants the client to meet. `hasher` is the hasher of the store.
    pub fn list_challenge(&self, hasher: &KeyHasher) -> Option<ListChallenge> {
        let AccessDecision::Challenged(list) = self.access else { return None };
        if self.is_denied_by_only() {
            return None;
        }
        let list = Arc::clone(&self.policy.list(list).list.name);
        let mut key = Key::default();
        key.push(list.as_bytes());
        key.push(self.policy.client_prefix.cut(self.head.client).to_string().as_bytes());
        Some(ListChallenge { list, key: hasher.hash(CHALLENGED, &key) })
    }

    /// The client has solved the challenge of its list: the request is an ordinary one from now on.
    pub fn pass_challenge(&mut self) {
        if self.is_challenged() {
            self.access = AccessDecision::Ordinary;
        }
    }

    /// Whether a rule needs something that may stand in the body: a key, a list in `unless`, or a method that overrides
    /// the one sent. Makes sense only for a request with a body.
    pub fn needs_body(&self) -> bool {
        let is_denied =
            matches!(self.access, AccessDecision::Denied(_) | AccessDecision::Challenged(_) | AccessDecision::Banned);
        if is_denied || self.is_denied_by_only() {
            return false;
        }
        let limits_hold = self.access == AccessDecision::Ordinary;
        let names_account = |route: &Route| route.sessions.as_ref().is_some_and(|rule| rule.of.needs_body());
        if self.walk.collected.iter().any(|&route| names_account(self.policy.routes.get(route))) {
            return true;
        }
        let asks =
            |limit| if self.policy.reads_body(limit) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        if limits_hold && self.policy.each_applicable(&self.walk.collected, asks).is_break() {
            return true;
        }
        let mut routes = self.walk.collected.iter().map(|&route| self.policy.routes.get(route));
        if limits_hold && routes.any(known_client::reads_body) {
            return true;
        }
        // A method in the body may add routes. Only routes with rules matter.
        let widest = walk(self.policy, self.head, BodyMethods::Unknown);
        widest.collected.iter().filter(|route| !self.walk.collected.contains(route)).any(|&route| {
            let route = self.policy.routes.get(route);
            route.only.is_some() || (limits_hold && !route.limits.is_empty())
        })
    }

    /// Whether a rule may need what a token claims. Makes sense only where the policy [reads claims](Policy::reads_claims).
    pub fn needs_claims(&self, has_body: bool) -> bool {
        let reads = |limit| {
            if self.policy.limit_reads_claims(limit) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut routes = self.walk.collected.iter().map(|&route| self.policy.routes.get(route));
        // A method in the body may add routes.
        has_body
            || routes.any(|route| self.policy.route_reads_claims(route))
            || self.policy.each_applicable(&self.walk.collected, reads).is_break()
    }

    /// The route that forwards the request; `None`: the default upstream. The body does not change it.
    pub fn route(&self) -> Option<RouteId> {
        self.walk.primary
    }

    /// Adds the routes that the request may take by a method in its body.
    pub(super) fn add_body(&mut self, fields: &BodyFields) {
        if fields.is_empty() && fields.not_understood().is_none() {
            return;
        }
        let widened = with_body_methods(self.head, fields, |methods| match methods {
            BodyMethods::Known([]) => None,
            methods => Some(walk(self.policy, self.head, methods)),
        });
        if let Some(walk) = widened {
            self.walk = walk;
        }
    }

    /// The cause that denies the request before any limit is asked: the first of the rules before them.
    pub(super) fn denied_before_limits(&self, hasher: &KeyHasher) -> Option<DenialCause> {
        match self.access {
            AccessDecision::Denied(list) => {
                Some(DenialCause::Listed { list: Arc::clone(&self.policy.list(list).list.name) })
            }
            _ if self.is_denied_by_only() => Some(DenialCause::NotOnList),
            AccessDecision::Banned => Some(DenialCause::Banned),
            AccessDecision::Challenged(_) => self.list_challenge(hasher).map(DenialCause::Challenged),
            AccessDecision::Ordinary | AccessDecision::Allowed(_) => None,
        }
    }

    /// Whether one of the routes has `only`, and none of its lists holds the client.
    pub(super) fn is_denied_by_only(&self) -> bool {
        let collected = self.walk.collected.iter();
        let mut only = collected.filter_map(|&route| self.policy.routes.get(route).only.as_ref()).peekable();
        if only.peek().is_none() {
            return false;
        }
        with_source(self.policy, self.head, BodyFields::NONE, &self.walk, self.identity, |source| {
            only.any(|lists| self.policy.list_with_all_values(lists, source).is_none())
        })
    }
}

/// Calls `then` with the methods that the body names. One that is not understood may name any.
pub(super) fn with_body_methods<T>(
    head: &CanonicalHead<'_>,
    fields: &BodyFields,
    then: impl FnOnce(BodyMethods<'_>) -> T,
) -> T {
    if body_may_hide_a_method(head, fields) {
        return then(BodyMethods::Unknown);
    }
    then(BodyMethods::Known(&body_overrides(fields)))
}

fn walk(policy: &Policy, head: &CanonicalHead<'_>, body: BodyMethods<'_>) -> Walk {
    let source = ValueSource::new(head, BodyFields::NONE);
    policy.routes.walk(&mut RequestReadings::new(head, body, &|list| policy.membership(list, &source)))
}

fn access_decision(policy: &Policy, head: &CanonicalHead<'_>) -> AccessDecision {
    let source = ValueSource::new(head, BodyFields::NONE);
    if let Some(list) = policy.list_with_all_values(&policy.access.allow, &source) {
        return AccessDecision::Allowed(list);
    }
    if let Some(list) = policy.list_with_any_value(&policy.access.deny, &source) {
        return AccessDecision::Denied(list);
    }
    policy.challenging(head.reputation).map_or(AccessDecision::Ordinary, AccessDecision::Challenged)
}
