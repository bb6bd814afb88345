//! The walk through the routes. The first match wins, but only a sure match ends the walk. If there are many routes, an
//! index yields the ones that may match. Descriptors take the route of their domain.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::index::RequestIndex;
use crate::rules::client::Prefix;
use crate::rules::key::KeySpec;
use crate::rules::limit::{ChannelId, DenyResponse, DescriptorFilter, LimitId};
use crate::rules::list::{ListId, Membership};
use crate::rules::outcome::OutcomeRule;
use crate::rules::request::head::{Overrides, head_overrides, methods_in, query_may_hide_a_method};
use crate::rules::request::query::RequestQuery;
use crate::rules::request::{CanonicalHead, CanonicalPath, RequestPath};
use crate::rules::route::Condition;
use crate::rules::route::condition::MethodSet;
use crate::words::glob::Glob;
use crate::words::word::words;

/// With fewer routes each of them is compared: most differ from a request in the first bytes of the path.
const MIN_INDEXED: usize = 17;

/// Routes in the order they are tried.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    /// Routes of domains come last.
    routes: Vec<Route>,
    /// How many routes are for requests.
    requests: usize,
    /// `None`: so few routes that comparing all of them is quicker.
    index: Option<RequestIndex>,
}

/// The routes that a request may take.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Walk {
    /// Each route that matches under some reading, in order, up to the first one that matches under all. The limits and
    /// `only` of all these routes hold.
    pub collected: SmallVec<[RouteId; 4]>,
    /// The first route that matches under the plain reading. It forwards the request.
    pub primary: Option<RouteId>,
}

impl RouteTable {
    /// Sorts the routes of domains behind all others; else the order stays.
    pub fn new(routes: Vec<Route>) -> Self {
        let (mut routes, of_domains): (Vec<Route>, Vec<Route>) =
            routes.into_iter().partition(|route| route.domain.is_none());
        let requests = routes.len();
        let index = (requests >= MIN_INDEXED).then(|| RequestIndex::new(&routes));
        routes.extend(of_domains);
        Self { routes, requests, index }
    }

    /// Adds a route after the others of its kind, and rebuilds the index. Adding a route of requests changes the ids of
    /// domains.
    pub fn push(&mut self, route: Route) -> &mut Route {
        let place = if route.domain.is_some() { self.routes.len() } else { self.requests };
        let mut routes = std::mem::take(self).into_routes();
        routes.insert(place, route);
        *self = Self::new(routes);
        &mut self.routes[place]
    }

    pub fn into_routes(self) -> Vec<Route> {
        self.routes
    }

    /// Every route.
    pub fn all(&self) -> &[Route] {
        &self.routes
    }

    /// Where requests to any route carry sessions.
    pub fn session_carriers(&self) -> SessionCarriers {
        SessionCarriers::of(self.routes.iter().filter_map(|route| route.sessions.as_ref()))
    }

    /// The routes that requests may take, in the order they are tried.
    pub fn of_requests(&self) -> &[Route] {
        &self.routes[..self.requests]
    }

    /// The route of a domain; `None`: no route names it.
    pub fn of_domain(&self, domain: &str) -> Option<RouteId> {
        let domains = (0..).map(RouteId).zip(&self.routes).skip(self.requests);
        domains.into_iter().find(|(_, route)| route.domain.as_deref() == Some(domain)).map(|(id, _)| id)
    }

    pub fn get(&self, id: RouteId) -> &Route {
        &self.routes[usize::from(id.0)]
    }

    pub fn walk(&self, request: &mut RequestReadings<'_>) -> Walk {
        match &self.index {
            Some(index) => self.walk_among(index.candidates(request.head), request),
            None => self.walk_all(request),
        }
    }

    fn walk_all(&self, request: &mut RequestReadings<'_>) -> Walk {
        self.walk_among((0..).map(RouteId).take(self.requests), request)
    }

    /// Compares the request with these routes, which are in order.
    fn walk_among(&self, ids: impl Iterator<Item = RouteId>, request: &mut RequestReadings<'_>) -> Walk {
        let mut walk = Walk::default();
        for id in ids {
            let Ok(certainty) = self.get(id).condition.judge(request) else { continue };
            walk.collected.push(id);
            if walk.primary.is_none() && certainty >= Certainty::Plainly {
                walk.primary = Some(id);
            }
            if certainty == Certainty::Surely {
                break;
            }
        }
        walk
    }
}

// The ways in which an application may read a request: with its own method or one that overrides it, and with one or
// another of repeated values.

/// How surely a condition holds: under one reading of the request, or under all.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Certainty {
    /// Under some reading, but not the plain one.
    Possibly,
    /// Under the plain reading: the method as it was sent, any of repeated values.
    Plainly,
    /// Under every reading.
    Surely,
}

/// The methods that a body may add to the methods of the head.
#[derive(Clone, Copy, Debug)]
pub enum BodyMethods<'a> {
    /// These. None when there is no body.
    Known(&'a [Cow<'a, str>]),
    /// Any, because the body is not understood.
    Unknown,
}

/// A request in all its readings. A client can add a reading to its request, but not remove one.
pub struct RequestReadings<'a> {
    pub head: &'a CanonicalHead<'a>,
    body: BodyMethods<'a>,
    membership: &'a dyn Fn(ListId) -> Membership,
    /// Read when the first route asks for a method.
    in_head: Option<HeadMethods<'a>>,
}

/// The methods that the head may add to the one sent.
struct HeadMethods<'a> {
    overrides: Overrides<'a>,
    /// Whether the query may name any other.
    is_unknown: bool,
}

impl<'a> RequestReadings<'a> {
    /// `membership` says how the request stands to a list.
    pub fn new(
        head: &'a CanonicalHead<'a>,
        body: BodyMethods<'a>,
        membership: &'a dyn Fn(ListId) -> Membership,
    ) -> Self {
        Self { head, body, membership, in_head: None }
    }

    /// How surely the method is in a set; `None`: under no reading.
    pub(super) fn method(&mut self, set: &MethodSet) -> Option<Certainty> {
        let plain = set.contains(self.head.method.as_str());
        let head = self.head;
        let HeadMethods { overrides, is_unknown } = self.in_head.get_or_insert_with(|| HeadMethods {
            overrides: head_overrides(head),
            is_unknown: !head.query.is_empty() && query_may_hide_a_method(&head.query),
        });
        let (body, unknown) = match self.body {
            BodyMethods::Known(methods) => (methods, *is_unknown),
            BodyMethods::Unknown => (&[][..], true),
        };
        let mut others = methods_in(overrides).chain(methods_in(body));
        if plain {
            let all = !unknown && others.all(|method| set.contains(method));
            return Some(if all { Certainty::Surely } else { Certainty::Plainly });
        }
        (unknown || others.any(|method| set.contains(method))).then_some(Certainty::Possibly)
    }

    /// How surely one of these lists holds the client.
    pub(super) fn client(&self, lists: &[ListId]) -> Option<Certainty> {
        let strongest = lists.iter().map(|&list| (self.membership)(list)).max()?;
        match strongest {
            Membership::None => None,
            Membership::Some => Some(Certainty::Plainly),
            Membership::All => Some(Certainty::Surely),
        }
    }
}

/// How surely a path matches: in the reading of most applications, and in the other readings.
pub(super) fn of_path(path: &RequestPath<'_>, fits: impl Fn(&CanonicalPath<'_>) -> bool) -> Option<Certainty> {
    let mut others = path.readings().iter();
    if fits(path.canonical()) {
        let surely = !path.may_be_any() && others.all(&fits);
        return Some(if surely { Certainty::Surely } else { Certainty::Plainly });
    }
    (path.may_be_any() || others.any(fits)).then_some(Certainty::Possibly)
}

/// How surely a parameter matches: in the query that was sent, and in queries that are hidden in the path.
pub(super) fn of_query(query: &RequestQuery<'_>, name: &str, fits: impl Fn(&str) -> bool) -> Option<Certainty> {
    let sent = of_values(query.sent_values(name).map(|value| fits(&value)));
    if !query.is_ambiguous() {
        return sent;
    }
    match sent {
        Some(_) => Some(Certainty::Plainly),
        None => query.values(name).any(|value| fits(&value)).then_some(Certainty::Possibly),
    }
}

/// How surely repeated values match: all of them, some, or none.
pub(super) fn of_values(values: impl Iterator<Item = bool>) -> Option<Certainty> {
    let mut some = false;
    let mut all = true;
    for fits in values {
        some |= fits;
        all &= fits;
    }
    some.then_some(if all { Certainty::Surely } else { Certainty::Plainly })
}

impl fmt::Debug for RequestReadings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestReadings").field("head", self.head).field("body", &self.body).finish_non_exhaustive()
    }
}

// A route of the configuration.

/// The position of an upstream in the configuration.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UpstreamId(pub u16);

/// The position of a route in the table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RouteId(pub u16);

/// One entry of `routes`.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its `name`, or the text of its `match` where it has none.
    pub name: Arc<str>,
    /// The condition on requests. A route of a domain has none.
    pub condition: Condition,
    /// The domain whose descriptors take this route. No request takes such a route.
    pub domain: Option<Arc<str>>,
    pub upstream: UpstreamId,
    /// `only`: clients outside these lists are denied.
    pub only: Option<Vec<ListId>>,
    pub limits: Vec<LimitId>,
    /// How answers of the application are classified.
    pub outcome: Option<Arc<OutcomeRule>>,
    pub known_clients: Option<KnownClients>,
    /// The rule for sessions that a success gives the client.
    pub sessions: Option<SessionRule>,
    pub deny_response: Option<Box<DenyResponse>>,
    /// The descriptors that a domain denies.
    pub denied: Vec<DescriptorFilter>,
}

impl Route {
    /// The webhooks that hear of a success after failures.
    pub fn sign_in_channels(&self) -> Vec<ChannelId> {
        let of_clients = self.known_clients.iter().flat_map(|known| &known.notify);
        let mut channels: Vec<ChannelId> =
            of_clients.chain(self.sessions.iter().flat_map(|sessions| &sessions.notify)).copied().collect();
        channels.sort_unstable();
        channels.dedup();
        channels
    }
}

// Which clients a route remembers after a success.

/// `known_clients`: after a success the client is known for a user name.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownClients {
    /// The user name, and what else tells accounts apart, such as the host.
    pub of: KeySpec,
    /// How many clients are remembered for each user name, the latest ones.
    pub remember: NonZeroU32,
    /// How long a client is known after its last success.
    pub keep: Duration,
    pub by: KnownBy,
    /// Addresses are cut to this prefix before they are compared.
    pub prefix: Prefix,
    /// The webhooks that hear of a success of another client after failures.
    pub notify: Vec<ChannelId>,
}

/// Where the configuration leaves them out.
impl KnownClients {
    pub const REMEMBER: NonZeroU32 = NonZeroU32::new(5).unwrap();
    pub const KEEP: Duration = Duration::from_secs(90 * 86_400);
}

words! {
    /// The marks by which a client is known.
    #[derive(Default)]
    pub enum KnownBy {
        #[default]
        Address = "address",
        /// A signed device cookie.
        Cookie = "cookie",
    }
}

// Which cookies and tokens are sessions of an account, and where requests carry them.

/// `sessions`: what a success gives the client is from then on a session of the account that the request named.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRule {
    /// The parts of the request that name the account.
    pub of: KeySpec,
    pub cookies: Vec<CookieNames>,
    /// Dotted paths of tokens in the JSON body of an answer.
    pub tokens: Arc<[Box<str>]>,
    /// How long a session is known after its last use.
    pub keep: Duration,
    /// A success gives the client a session that its request did not carry. Otherwise the application keeps the one that the
    /// request carries.
    pub is_fresh: bool,
    /// The webhooks that hear of a success after failures.
    pub notify: Vec<ChannelId>,
}

impl SessionRule {
    /// Where the configuration leaves it out.
    pub const KEEP: Duration = Duration::from_secs(12 * 3600);

    /// Whether sessions are fresh where the configuration leaves it out.
    pub const FRESH: bool = true;
}

/// The name of a cookie, or a glob for several names.
#[derive(Clone, Debug, PartialEq)]
pub enum CookieNames {
    One(Box<str>),
    Like { text: Box<str>, names: Glob },
}

/// The carriers of sessions in requests to any route: the cookies of all `sessions`, and the bearer token if one has
/// tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionCarriers(Vec<SessionCarrier>);

/// One kind of cookie, or the bearer. A client chooses the host that it names: a session is one on every host.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionCarrier {
    /// `None`: the bearer.
    pub cookies: Option<CookieNames>,
}

impl SessionRule {
    /// The carriers of its sessions.
    fn carriers(&self) -> impl Iterator<Item = SessionCarrier> {
        let bearer = (!self.tokens.is_empty()).then_some(None);
        self.cookies.iter().cloned().map(Some).chain(bearer).map(|cookies| SessionCarrier { cookies })
    }
}

impl CookieNames {
    /// A name; a glob where it has a `*` or a `?`.
    pub fn new(text: &str) -> Self {
        if !Glob::looks_like_glob(text) {
            return Self::One(text.into());
        }
        // Names are compared as `flattened` makes them.
        Self::Like { text: text.into(), names: Glob::new(&text.replace('.', "_")) }
    }
}

impl fmt::Display for CookieNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(text) | Self::Like { text, .. } => f.write_str(text),
        }
    }
}

impl SessionCarriers {
    /// The carriers of these rules, each once.
    pub fn of<'r>(rules: impl Iterator<Item = &'r SessionRule>) -> Self {
        let mut all = Vec::new();
        for carrier in rules.flat_map(SessionRule::carriers) {
            if !all.contains(&carrier) {
                all.push(carrier);
            }
        }
        Self(all)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &SessionCarrier> {
        self.0.iter()
    }

    /// The carriers that carry the sessions of a rule.
    pub fn of_rule(&self, rule: &SessionRule) -> impl Iterator<Item = &SessionCarrier> {
        rule.carriers().filter_map(|carrier| self.0.iter().find(|known| **known == carrier))
    }
}

#[cfg(test)]
mod tests;
