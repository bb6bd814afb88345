//! The first step: what the head of a request alone decides.

use http::header::CONTENT_TYPE;

use super::Policy;
use super::device;
use super::device::DeviceKeys;
use super::source::with_source;
use crate::key::Source;
use crate::list::ListId;
use crate::request::BodyFields;
use crate::request::RequestHead;
use crate::request::header::header_values;
use crate::request::method::body_overrides;
use crate::route::BodyMethods;
use crate::route::RequestReadings;
use crate::route::RouteId;
use crate::route::Walk;

/// A request whose lists and routes are known.
#[derive(Debug)]
pub struct RoutedRequest<'p, 'h> {
    pub(super) policy: &'p Policy,
    pub(super) head: &'h RequestHead<'h>,
    pub(super) admission: Admission,
    pub(super) device_keys: Option<DeviceKeys<'h>>,
    /// The routes that the request may be read as taking.
    pub(super) walk: Walk,
}

/// What the lists of `access` say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Admission {
    Ordinary,
    /// No limit holds for it. `only` still does: it says who may come here at all.
    Allowed(ListId),
    Refused(ListId),
    /// The address of the client is banned. `only` comes before.
    Banned,
}

/// Looks a request up in the lists and the route table.
pub fn enter<'p, 'h>(policy: &'p Policy, head: &'h RequestHead<'h>) -> RoutedRequest<'p, 'h> {
    let admission = admission(policy, head);
    RoutedRequest { policy, head, admission, device_keys: None, walk: walk(policy, head, BodyMethods::Known(&[])) }
}

impl<'h> RoutedRequest<'_, 'h> {
    /// Has device cookies verified. Without it no device is known.
    #[must_use]
    pub fn with_device_keys(self, device_keys: Option<DeviceKeys<'h>>) -> Self {
        Self { device_keys, ..self }
    }
}

impl RoutedRequest<'_, '_> {
    /// The same where the address of the client is banned: that denies it, unless a list of `access` has decided already.
    #[must_use]
    pub fn with_ban(self, is_banned: bool) -> Self {
        if is_banned && self.admission == Admission::Ordinary {
            return Self { admission: Admission::Banned, ..self };
        }
        self
    }

    /// Whether a rule asks for something that may stand in the body: a key, a list that frees from a limit, or a
    /// method that overrides the one sent. Worth asking only of a request that has a body.
    pub fn needs_body(&self) -> bool {
        if matches!(self.admission, Admission::Refused(_) | Admission::Banned) || self.bars() {
            return false;
        }
        let limits_hold = self.admission == Admission::Ordinary;
        let limits = self.policy.applicable(&self.walk.collected);
        if limits_hold && limits.iter().any(|&limit| self.policy.reads_body(limit)) {
            return true;
        }
        let mut routes = self.walk.collected.iter().map(|&route| self.policy.routes.get(route));
        if limits_hold && routes.any(device::reads_body) {
            return true;
        }
        // A method in the body may add routes; whether it adds rules is what matters.
        let widest = walk(self.policy, self.head, BodyMethods::Unknown);
        widest.collected.iter().filter(|route| !self.walk.collected.contains(route)).any(|&route| {
            let route = self.policy.routes.get(route);
            route.only.is_some() || (limits_hold && !route.limits.is_empty())
        })
    }

    /// The route the request goes by; `None`: the default upstream. Nothing in the body changes it.
    pub fn route(&self) -> Option<RouteId> {
        self.walk.primary
    }

    /// The same with the routes that the request may be read as taking once the fields of its body are known.
    pub(super) fn with_body(self, fields: &BodyFields) -> Self {
        let widened = with_body_methods(self.head, fields, |methods| match methods {
            BodyMethods::Known([]) => None,
            methods => Some(walk(self.policy, self.head, methods)),
        });
        match widened {
            Some(walk) => Self { walk, ..self },
            None => self,
        }
    }

    /// Whether one of the routes is for members of other lists only.
    pub(super) fn bars(&self) -> bool {
        let collected = self.walk.collected.iter();
        let mut only = collected.filter_map(|&route| self.policy.routes.get(route).only.as_ref()).peekable();
        if only.peek().is_none() {
            return false;
        }
        with_source(self.policy, self.head, &BodyFields::none(), &self.walk, |source| {
            only.any(|lists| self.policy.holding(lists, source).is_none())
        })
    }
}

/// Hands on what the body says about the method. In a form that was not seen to its end it may say anything.
pub(super) fn with_body_methods<T>(
    head: &RequestHead<'_>,
    fields: &BodyFields,
    then: impl FnOnce(BodyMethods<'_>) -> T,
) -> T {
    if !fields.is_fully_read() && may_hide_a_method(head) {
        return then(BodyMethods::Unknown);
    }
    then(BodyMethods::Known(&body_overrides(fields)))
}

/// Frameworks look for the field in forms, some of them whatever the method is. Uploads of other kinds are not held to be
/// forms.
fn may_hide_a_method(head: &RequestHead<'_>) -> bool {
    let mut kinds = header_values(head.headers, CONTENT_TYPE).peekable();
    let is_form = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        kind.contains("form-urlencoded") || kind.contains("multipart")
    };
    kinds.peek().is_none() || kinds.any(|kind| is_form(&kind))
}

fn walk(policy: &Policy, head: &RequestHead<'_>, body: BodyMethods<'_>) -> Walk {
    let fields = BodyFields::none();
    let source = Source { head, fields: &fields, routes: &[], captures: &[], device: None };
    policy.routes.walk(&mut RequestReadings::new(head, body, &|list| policy.membership(list, &source)))
}

fn admission(policy: &Policy, head: &RequestHead<'_>) -> Admission {
    let fields = BodyFields::none();
    let source = Source { head, fields: &fields, routes: &[], captures: &[], device: None };
    if let Some(list) = policy.holding(&policy.access.allow, &source) {
        return Admission::Allowed(list);
    }
    policy.touching(&policy.access.deny, &source).map_or(Admission::Ordinary, Admission::Refused)
}
