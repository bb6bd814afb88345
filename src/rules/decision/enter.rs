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
    #[must_use]
    pub fn with_device_keys(self, device_keys: Option<DeviceKeys<'h>>) -> Self {
        Self { device_keys, ..self }
    }

    /// Counts by the accounts of these sessions. `None`: nothing learns sessions.
    #[must_use]
    pub fn with_sessions(self, sessions: Option<&'h CarriedSessions>) -> Self {
        let users = sessions.map_or(&[][..], CarriedSessions::users);
        let unread_users = sessions.and_then(CarriedSessions::unread);
        Self { sessions, identity: Identity { users, unread_users, ..self.identity }, ..self }
    }

    /// Counts by the claims of the tokens that the request carries and that verify.
    #[must_use]
    pub fn with_claims(self, claims: &'h RequestClaims) -> Self {
        Self { identity: Identity { claims, ..self.identity }, ..self }
    }

    /// Counts a value that was not understood as another one than in any other request. `nonce` is random.
    #[must_use]
    pub fn with_nonce(self, nonce: u64) -> Self {
        Self { nonce, ..self }
    }
}

impl RoutedRequest<'_, '_> {
    /// Denies the request where the address of the client is banned, unless a list of `access` has decided already.
    #[must_use]
    pub fn with_ban(self, is_banned: bool) -> Self {
        if is_banned && matches!(self.access, AccessDecision::Ordinary | AccessDecision::Challenged(_)) {
            return Self { access: AccessDecision::Banned, ..self };
        }
        self
    }

    /// Leaves `concurrent` limits out: the end of the request will not be known, and its slot would stay taken.
    #[must_use]
    pub fn without_end(self) -> Self {
        Self { is_end_seen: false, ..self }
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

    /// Continues as an ordinary request: the client has solved the challenge of its list.
    #[must_use]
    pub fn after_challenge(self) -> Self {
        match self.access {
            AccessDecision::Challenged(_) => Self { access: AccessDecision::Ordinary, ..self },
            _ => self,
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
    pub(super) fn with_body(self, fields: &BodyFields) -> Self {
        if fields.is_empty() && fields.not_understood().is_none() {
            return self;
        }
        let widened = with_body_methods(self.head, fields, |methods| match methods {
            BodyMethods::Known([]) => None,
            methods => Some(walk(self.policy, self.head, methods)),
        });
        match widened {
            Some(walk) => Self { walk, ..self },
            None => self,
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
