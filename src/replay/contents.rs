//! What a log holds of each request, as far as its first lines tell.

use std::collections::BTreeSet;

use crate::head::FieldName;
use crate::head::KnownName;
use crate::key::Selector;
use crate::replay::LoggedHeader;
use crate::replay::LoggedRequest;
use crate::replay::LoggedValue;
use crate::route::Route;

/// What a log holds of each request. Method, path, client and status stand in every log.
#[derive(Clone, Debug, Default)]
pub struct LogContents {
    parts: Vec<Part>,
    headers: HeldHeaders,
    answer_headers: HeldHeaders,
}

/// What a log may hold beside headers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Host,
    Query,
    Duration,
    /// What the gateway saw in the answer.
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
            contents.headers.note(&request.headers, request.has_all_headers);
            contents.answer_headers.note(&request.answer_headers, request.has_all_headers);
        }
        contents
    }

    /// What both logs hold.
    #[must_use]
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.parts.retain(|part| other.parts.contains(part));
        Self {
            headers: self.headers.and(&other.headers),
            answer_headers: self.answer_headers.and(&other.answer_headers),
            ..self
        }
    }

    /// What of a selector's value the log does not hold. `None`: it holds the value.
    pub fn lacks(&self, selector: &Selector) -> Option<String> {
        let held = match selector {
            Selector::ClientIp(_) | Selector::Capture(_) | Selector::Method | Selector::Path | Selector::Route => true,
            Selector::Host => self.holds(Part::Host),
            Selector::Query(_) => self.holds(Part::Query),
            Selector::Header(name) => self.headers.holds(name.as_str()),
            Selector::Cookie(_) | Selector::Device => self.headers.holds(KnownName::COOKIE.as_str()),
            Selector::Bearer | Selector::BasicUser => self.headers.holds(KnownName::AUTHORIZATION.as_str()),
            Selector::Form(_)
            | Selector::Json(_)
            | Selector::Xml(_)
            | Selector::Param(_)
            | Selector::User
            | Selector::Jwt(_)
            | Selector::Descriptor(_) => false,
            Selector::First(choices) => return choices.iter().find_map(|choice| self.lacks(&choice.selector)),
        };
        // No key ring verifies the cookies of yesterday.
        (!held || *selector == Selector::Device).then(|| selector.to_string())
    }

    pub fn lacks_header(&self, name: &FieldName) -> Option<String> {
        (!self.headers.holds(name.as_str())).then(|| format!("header.{name}"))
    }

    pub fn lacks_cookie(&self, name: &str) -> Option<String> {
        (!self.headers.holds(KnownName::COOKIE.as_str())).then(|| format!("cookie.{name}"))
    }

    pub fn lacks_query(&self, name: &str) -> Option<String> {
        (!self.holds(Part::Query)).then(|| format!("query.{name}"))
    }

    pub fn lacks_host(&self) -> Option<String> {
        (!self.holds(Part::Host)).then(|| "host".to_owned())
    }

    pub fn lacks_durations(&self) -> Option<String> {
        (!self.holds(Part::Duration)).then(|| "how long a request took".to_owned())
    }

    /// What of an answer an outcome needs and the log does not hold. A log that has the outcomes themselves lacks
    /// nothing.
    pub fn lacks_for_outcome(&self, route: &Route) -> Vec<String> {
        if self.holds(Part::Outcome) { Vec::new() } else { self.lacks_of_answer(route) }
    }

    /// Whether the logged answers decide the outcome.
    pub fn decides(&self, route: &Route) -> bool {
        self.lacks_of_answer(route).is_empty()
    }

    fn lacks_of_answer(&self, route: &Route) -> Vec<String> {
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

/// Headers that a log of all headers leaves out by default: only where one was seen are they there.
const CREDENTIALS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];
