//! The data that a log has of each request, judged by its first lines.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::{fmt, mem};

use serde::Serialize;

use crate::replay::{LoggedHeader, LoggedKey, LoggedRequest, LoggedValue};
use crate::rules::decision::Policy;
use crate::rules::key::{KeyPart, KeySpec, Selector, Spelling};
use crate::rules::limit::{Limit, LimitId, Missing, Rule};
use crate::rules::list::ListId;
use crate::rules::route::{Condition, KnownBy, Route, RouteTable};
use crate::wire::head::{FieldName, KnownName};

/// Headers that a log of all headers leaves out by default: only where one was seen are they there.
const CREDENTIALS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];

/// The data that a log has of each request. Method, path, client and status are in every log.
#[derive(Clone, Debug, Default)]
pub struct LogContents {
    parts: Vec<Part>,
    headers: HeldHeaders,
    answer_headers: HeldHeaders,
    /// The limits whose keys the log has hashes of.
    keys: BTreeSet<Box<str>>,
}

/// The data that a log may have beside headers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Host,
    Query,
    Duration,
    /// The outcome that the gateway saw in the answer.
    Outcome,
}

/// The headers that a log holds.
#[derive(Clone, Debug, Default)]
struct HeldHeaders {
    /// A header that is not in the log was not sent.
    all: bool,
    held: BTreeSet<Box<str>>,
    hidden: BTreeSet<Box<str>>,
}

impl LogContents {
    /// By a sample of its requests.
    pub(super) fn of<'r>(sample: impl Iterator<Item = &'r LoggedRequest>) -> Self {
        let mut contents = Self::default();
        for request in sample {
            contents.note(Part::Host, request.host.is_some());
            contents.note(Part::Query, request.has_query);
            contents.note(Part::Duration, request.duration.is_some());
            contents.note(Part::Outcome, request.outcome.is_some());
            contents.keys.extend(request.keys.iter().map(|key| key.limit.clone()));
            contents.headers.note(&request.headers, request.has_all_headers);
            contents.answer_headers.note(&request.answer_headers, request.has_all_headers);
        }
        contents
    }

    /// The data that both logs have.
    #[must_use]
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.parts.retain(|part| other.parts.contains(part));
        self.keys.retain(|limit| other.keys.contains(limit));
        Self {
            headers: self.headers.and(&other.headers),
            answer_headers: self.answer_headers.and(&other.answer_headers),
            ..self
        }
    }

    /// The part of a selector's value that is not in the log. `None`: the log has the value.
    pub fn missing(&self, selector: &Selector) -> Option<String> {
        let held = match selector {
            Selector::ClientIp(_) | Selector::Capture(_) | Selector::Method | Selector::Path | Selector::Route => true,
            Selector::Host => self.holds(Part::Host),
            Selector::Query(_) => self.holds(Part::Query),
            Selector::Header(name) => self.headers.holds(name.as_str()) || self.has_hashes(name),
            Selector::Cookie(_) | Selector::Device => self.headers.holds(KnownName::COOKIE.as_str()),
            Selector::Bearer | Selector::BasicUser => self.headers.holds(KnownName::AUTHORIZATION.as_str()),
            Selector::Form(_)
            | Selector::Json(_)
            | Selector::Xml(_)
            | Selector::Param(_)
            | Selector::User
            | Selector::Jwt(_)
            | Selector::Descriptor(_) => false,
            Selector::First(choices) => return choices.iter().find_map(|choice| self.missing(&choice.selector)),
        };
        // No key ring verifies the cookies of yesterday.
        (!held || *selector == Selector::Device).then(|| selector.to_string())
    }

    pub fn missing_header(&self, name: &FieldName) -> Option<String> {
        (!self.headers.holds(name.as_str())).then(|| format!("header.{name}"))
    }

    pub fn missing_cookie(&self, name: &str) -> Option<String> {
        (!self.headers.holds(KnownName::COOKIE.as_str())).then(|| format!("cookie.{name}"))
    }

    pub fn missing_query(&self, name: &str) -> Option<String> {
        (!self.holds(Part::Query)).then(|| format!("query.{name}"))
    }

    pub fn missing_host(&self) -> Option<String> {
        (!self.holds(Part::Host)).then(|| "host".to_owned())
    }

    pub fn missing_durations(&self) -> Option<String> {
        (!self.holds(Part::Duration)).then(|| "how long a request took".to_owned())
    }

    /// The parts of an answer that the outcome needs and the log does not have. Empty if the log has the outcomes
    /// themselves.
    pub fn missing_for_outcome(&self, route: &Route) -> Vec<String> {
        if self.holds(Part::Outcome) { Vec::new() } else { self.missing_of_answer(route) }
    }

    /// Whether the logged answers decide the outcome.
    pub fn decides(&self, route: &Route) -> bool {
        self.missing_of_answer(route).is_empty()
    }

    fn missing_of_answer(&self, route: &Route) -> Vec<String> {
        let mut lacks = Vec::new();
        let Some(rule) = &route.outcome else { return lacks };
        if route.sessions.is_some() {
            // Whether a success is the name's own.
            lacks.push("the sessions of the answer".to_owned());
        }
        for side in [&rule.success, &rule.failure].into_iter().flatten() {
            let names = side.headers.iter().map(|(name, _)| name);
            let names = names.filter(|name| !self.answer_headers.holds(name.as_str()));
            lacks.extend(names.map(|name| format!("the header {name} of the answer")));
            if !side.cookies.is_empty() && !self.answer_headers.holds(KnownName::SET_COOKIE.as_str()) {
                lacks.push("the cookies of the answer".to_owned());
            }
            if side.needs_body() {
                lacks.push("the body of the answer".to_owned());
            }
        }
        lacks.sort();
        lacks.dedup();
        lacks
    }

    /// Whether a header is one that stands for the hashes of a limit.
    fn has_hashes(&self, name: &FieldName) -> bool {
        self.keys.iter().any(|limit| LoggedKey::header_of(limit) == *name)
    }

    fn note(&mut self, part: Part, is_there: bool) {
        if is_there && !self.holds(part) {
            self.parts.push(part);
        }
    }

    fn holds(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

impl HeldHeaders {
    fn note(&mut self, headers: &[LoggedHeader], has_all: bool) {
        self.all |= has_all;
        for LoggedHeader { name, value } in headers {
            let names = if *value == LoggedValue::Hidden { &mut self.hidden } else { &mut self.held };
            if !names.contains(name.as_str()) {
                names.insert(name.as_str().into());
            }
        }
    }

    fn holds(&self, name: &str) -> bool {
        let is_held = self.held.contains(name) || self.all && !CREDENTIALS.contains(&name);
        is_held && !self.hidden.contains(name)
    }

    fn and(self, other: &Self) -> Self {
        let names = self.held.union(&other.held);
        let held = names.filter(|name| self.holds(name) && other.holds(name)).cloned().collect();
        let hidden = self.hidden.union(&other.hidden).cloned().collect();
        Self { all: self.all && other.all, held, hidden }
    }
}

// Leaves out of a policy what a log does not tell enough for. Nothing is guessed.

/// A part of a configuration that was not replayed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LeftOut {
    pub kind: LeftOutKind,
    /// The name of the limit, route or list.
    pub name: Arc<str>,
    /// Left out on this route alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Arc<str>>,
    /// The data that the log does not have: `param.username`.
    pub lacks: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutKind {
    Limit,
    /// With all its limits.
    Route,
    /// `only` of a route.
    Only,
    /// A list in `access`.
    List,
    /// Clients of a route count as known under any name.
    KnownNames,
    /// No client of a route becomes known.
    KnownClients,
}

/// Removes the rules from `policy` that cannot be decided with these contents, and returns them. Limits keep their ids.
pub fn leave_out(policy: &mut Policy, contents: &LogContents) -> Vec<LeftOut> {
    use_hashes(policy, contents);
    let mut pass = Pass { contents, unknown_lists: unknown_lists(policy, contents), ..Pass::new(contents) };
    pass.lists(policy);
    let routes = mem::take(&mut policy.routes).into_routes();
    let routes = routes.into_iter().filter_map(|route| pass.route(route, &policy.limits));
    policy.routes = RouteTable::new(routes.collect());
    let everywhere = mem::take(&mut policy.everywhere);
    policy.everywhere = everywhere.into_iter().filter(|&id| pass.keeps_everywhere(id, policy.limit(id))).collect();
    pass.limits_without_place(policy);
    pass.left_out
}

/// Counts by the hashes of a log where it does not hold the values themselves: the hash of a limit's key stands for that key,
/// and for its value in another key where the key is this value alone.
fn use_hashes(policy: &mut Policy, contents: &LogContents) {
    let is_missing = |part: &KeyPart| contents.missing(&part.selector).is_some();
    let mut hashed: Vec<_> = policy.limits.iter().filter(|limit| contents.keys.contains(&*limit.name)).collect();
    // A limit that spares nobody has a hash for each request.
    hashed.sort_by_key(|limit| limit.unless_known || !limit.unless.is_empty());
    let told: Vec<(KeyPart, KeyPart)> = hashed
        .into_iter()
        .filter_map(|limit| {
            let [part] = &limit.key.parts[..] else { return None };
            is_missing(part).then(|| (part.clone(), hash_part(&limit.name)))
        })
        .collect();
    let replace = |part: &mut KeyPart| {
        if let Some((_, hash)) = told.iter().find(|(known, _)| known == part) {
            *part = hash.clone();
        }
    };
    for limit in &mut policy.limits {
        if contents.keys.contains(&*limit.name) && limit.key.parts.iter().any(is_missing) {
            limit.key = KeySpec { parts: vec![hash_part(&limit.name)], names: Vec::new() };
            // Where it has no hash, the limit did not count the request.
            limit.missing = Missing::Skip;
        }
        limit.key.parts.iter_mut().chain(&mut limit.distinct).for_each(replace);
    }
    policy.routes = RouteTable::new(
        mem::take(&mut policy.routes)
            .into_routes()
            .into_iter()
            .map(|mut route| {
                route.known_clients.iter_mut().flat_map(|known| &mut known.of.parts).for_each(replace);
                route
            })
            .collect(),
    );
}

/// The part of a key that is the hash which the log has of the key of this limit.
fn hash_part(limit: &str) -> KeyPart {
    KeyPart { selector: Selector::Header(LoggedKey::header_of(limit)), spelling: Spelling::Usual }
}

/// The rules that have been left out so far.
struct Pass<'c> {
    contents: &'c LogContents,
    /// The lists whose members cannot be recognized, and the data that is missing.
    unknown_lists: HashMap<ListId, String>,
    left_out: Vec<LeftOut>,
    /// The limits that were left out on a route, or everywhere.
    limits: Vec<(LimitId, Option<Arc<str>>, Vec<String>)>,
    /// The data that the outcomes of routes lack.
    outcomes_lack: Vec<String>,
}

impl<'c> Pass<'c> {
    fn new(contents: &'c LogContents) -> Self {
        Self {
            contents,
            unknown_lists: HashMap::new(),
            left_out: Vec::new(),
            limits: Vec::new(),
            outcomes_lack: Vec::new(),
        }
    }

    fn lists(&mut self, policy: &mut Policy) {
        let access = &mut policy.access;
        for lists in [&mut access.allow, &mut access.deny] {
            let unknown = lists.iter().filter_map(|id| Some((*id, self.unknown_lists.get(id)?.clone())));
            for (id, lacks) in unknown.collect::<Vec<_>>() {
                let name = policy.lists[usize::from(id.0)].list.name.clone();
                self.left_out.push(LeftOut { kind: LeftOutKind::List, name, route: None, lacks: vec![lacks] });
            }
            lists.retain(|id| !self.unknown_lists.contains_key(id));
        }
    }

    /// The route without what cannot be decided. `None`: it cannot be decided which requests take it.
    fn route(&mut self, mut route: Route, limits: &[Limit]) -> Option<Route> {
        let name = Arc::clone(&route.name);
        let lacks = self.missing_for_route(&route);
        if !lacks.is_empty() {
            for &id in &route.limits {
                self.limits.push((id, Some(Arc::clone(&name)), lacks.clone()));
            }
            self.left_out.push(LeftOut { kind: LeftOutKind::Route, name, route: None, lacks });
            return None;
        }
        let only = route.only.as_deref().unwrap_or_default();
        let lacks: Vec<_> = only.iter().filter_map(|list| self.unknown_lists.get(list).cloned()).collect();
        if !lacks.is_empty() {
            route.only = None;
            self.left_out.push(LeftOut { kind: LeftOutKind::Only, name: Arc::clone(&name), route: None, lacks });
        }
        let missing_for_outcome = self.contents.missing_for_outcome(&route);
        if !missing_for_outcome.is_empty() {
            route.outcome = None;
        }
        self.known_clients(&mut route, limits, &missing_for_outcome);
        route.limits.retain(|&id| {
            let limit = &limits[usize::from(id.0)];
            let mut lacks = self.missing_for_limit(limit);
            if limit.count.outcome().is_some() || limit.reset_on.is_some() {
                lacks.extend(missing_for_outcome.iter().cloned());
            }
            self.keeps(id, Some(&name), lacks)
        });
        self.outcomes_lack.extend(missing_for_outcome);
        Some(route)
    }

    /// A client that is known under a name that the log does not hold counts as known under any: most clients have one name.
    fn known_clients(&mut self, route: &mut Route, limits: &[Limit], missing_for_outcome: &[String]) {
        let Some(known) = &mut route.known_clients else { return };
        let of = &mut known.of;
        let mut lacks: Vec<_> = of.parts.iter().filter_map(|part| self.contents.missing(&part.selector)).collect();
        let mut kind = LeftOutKind::KnownNames;
        if !lacks.is_empty() {
            of.parts.retain(|part| self.contents.missing(&part.selector).is_none());
            // So that each client is known for itself, as many as there are.
            of.parts.push(KeyPart { selector: Selector::ClientIp(Some(known.prefix)), spelling: Spelling::Usual });
            of.names.clear();
        }
        // No log holds the cookies that portcullis has given.
        known.by = KnownBy::Address;
        if !missing_for_outcome.is_empty() {
            (lacks, kind) = (missing_for_outcome.to_vec(), LeftOutKind::KnownClients);
        }
        if !lacks.is_empty() && limits.iter().any(|limit| limit.unless_known) {
            self.left_out.push(LeftOut { kind, name: Arc::clone(&route.name), route: None, lacks });
        }
    }

    fn keeps_everywhere(&mut self, id: LimitId, limit: &Limit) -> bool {
        let mut lacks = self.missing_for_limit(limit);
        if limit.count.outcome().is_some() || limit.reset_on.is_some() {
            lacks.extend(self.outcomes_lack.iter().cloned());
        }
        self.keeps(id, None, lacks)
    }

    fn keeps(&mut self, id: LimitId, route: Option<&Arc<str>>, lacks: Vec<String>) -> bool {
        if lacks.is_empty() {
            return true;
        }
        self.limits.push((id, route.cloned(), lacks));
        false
    }

    /// Names the limits that were left out. A limit without any route left is named without a route.
    fn limits_without_place(&mut self, policy: &Policy) {
        let on_routes = policy.routes.all().iter().flat_map(|route| &route.limits);
        let placed: Vec<LimitId> = on_routes.chain(&policy.everywhere).copied().collect();
        let mut named: Vec<LeftOut> = Vec::new();
        for (id, route, lacks) in mem::take(&mut self.limits) {
            let name = Arc::clone(&policy.limit(id).name);
            let route = route.filter(|_| placed.contains(&id));
            let known = named.iter_mut().find(|known| known.name == name && known.route == route);
            match known {
                Some(known) => known.lacks.extend(lacks),
                None => named.push(LeftOut { kind: LeftOutKind::Limit, name, route, lacks }),
            }
        }
        for left_out in &mut named {
            left_out.lacks.sort();
            left_out.lacks.dedup();
        }
        self.left_out.append(&mut named);
    }

    /// The data that is missing to decide which requests take a route.
    fn missing_for_route(&self, route: &Route) -> Vec<String> {
        match &route.domain {
            // No log of requests holds what a proxy asked about.
            Some(domain) => vec![format!("descriptors of the domain {domain}")],
            None => self.missing_for_condition(&route.condition),
        }
    }

    fn missing_for_condition(&self, condition: &Condition) -> Vec<String> {
        let contents = self.contents;
        let mut lacks = Vec::new();
        lacks.extend(condition.host.as_ref().and_then(|_| contents.missing_host()));
        lacks.extend(condition.headers.iter().filter_map(|(name, _)| contents.missing_header(name)));
        lacks.extend(condition.queries.iter().filter_map(|(name, _)| contents.missing_query(name)));
        lacks.extend(condition.cookies.iter().filter_map(|(name, _)| contents.missing_cookie(name)));
        lacks.extend(condition.client.iter().filter_map(|list| self.unknown_lists.get(list).cloned()));
        lacks
    }

    /// Apart from outcomes and known clients, which belong to a route.
    fn missing_for_limit(&self, limit: &Limit) -> Vec<String> {
        let parts = limit.key.parts.iter().chain(&limit.distinct);
        let mut lacks: Vec<_> = parts.filter_map(|part| self.contents.missing(&part.selector)).collect();
        lacks.extend(limit.unless.iter().filter_map(|list| self.unknown_lists.get(list).cloned()));
        if matches!(limit.rule, Rule::Concurrent(_)) {
            lacks.extend(self.contents.missing_durations());
        }
        lacks
    }
}

fn unknown_lists(policy: &Policy, contents: &LogContents) -> HashMap<ListId, String> {
    let lists = (0..).map(ListId).zip(&policy.lists);
    lists.filter_map(|(id, list)| Some((id, contents.missing(&list.of.as_ref()?.selector)?))).collect()
}

impl fmt::Display for LeftOut {
    /// `login-failures: not replayed: the log does not hold param.username`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, route, lacks } = self;
        match kind {
            LeftOutKind::Limit => write!(f, "{name}: not replayed")?,
            LeftOutKind::Route => write!(f, "route {name}: not replayed")?,
            LeftOutKind::Only => write!(f, "route {name}: `only` not replayed")?,
            LeftOutKind::List => write!(f, "list {name}: not replayed")?,
            LeftOutKind::KnownNames => write!(f, "route {name}: a client counts as known under any name")?,
            LeftOutKind::KnownClients => write!(f, "route {name}: no client becomes known")?,
        }
        if let Some(route) = route {
            write!(f, " on route {route}")?;
        }
        write!(f, ": the log does not hold {}", lacks.join(", "))
    }
}
