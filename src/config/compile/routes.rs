//! The `routes` section.

use std::collections::HashMap;
use std::sync::Arc;

use super::availability::Availability;
use super::limits::Limits;
use super::lists::{ListUse, Lists};
use super::upstreams::Upstreams;
use crate::config::compile::document::Compiler;
use crate::config::compile::limits::{Captures, LimitContext};
use crate::config::compile::names::{RouteNames, entries, slug};
use crate::config::compile::outcome::SUCCESS;
use crate::config::compile::record::Channels;
use crate::config::raw;
use crate::config::raw::forms::{MapOf, OneOrList};
use crate::config::raw::route::{Conditions, Match, Sessions};
use crate::config::raw::{Document, Field, Text, grammar};
use crate::record::RouteSeries;
use crate::rules::key::{KeySpec, Selector, SelectorSubject};
use crate::rules::route::{
    Case, Condition, CookieNames, MethodSet, PathPattern, PathRegex, Route, SessionRule, UpstreamId,
};
use crate::wire::head::FieldName;
use crate::words::glob::Glob;
use crate::words::units::Span;

/// The tables that routes refer to and add to.
#[derive(Debug)]
pub(super) struct RouteContext<'s> {
    pub default: Option<UpstreamId>,
    pub upstreams: &'s mut Upstreams,
    pub lists: &'s Lists,
    pub channels: &'s Channels,
    pub limits: &'s mut Limits,
    pub route_series: RouteSeries,
}

// The `match` of a route.

const VALUES_ARE_GLOBS: &str = "write the whole name; the value after the colon may be a glob";

impl Compiler {
    pub(super) fn routes(&mut self, document: &Document, mut shared: RouteContext<'_>) -> Vec<Route> {
        let Some(raw) = document.routes.get() else { return Vec::new() };
        if raw.items.len() > usize::from(u16::MAX) {
            let message = format!("there are more than {} routes", u16::MAX);
            self.mistakes.report(raw.at, message, "a configuration holds no more");
            return Vec::new();
        }
        self.refuse_repeated_names(&raw.items);
        self.refuse_repeated_domains(&raw.items);
        let mut route_names = RouteNames::reserving(&raw.items, shared.route_series);
        raw.items.iter().map(|route| self.route(route, &mut route_names, &mut shared)).collect()
    }

    fn route(&mut self, raw: &raw::route::Route, route_names: &mut RouteNames, shared: &mut RouteContext<'_>) -> Route {
        let case = match raw.case_sensitive.get().map(|sensitive| sensitive.value) {
            Some(true) => Case::Sensitive,
            Some(false) => Case::Ignored,
            None => Case::default(),
        };
        let mistakes_before = self.mistakes.len();
        let matched = raw.r#match.get();
        let domain = self.domain(raw);
        let of_requests = matched.filter(|_| domain.is_none());
        let condition = of_requests.map(|matched| self.condition(matched, case, shared.lists)).unwrap_or_default();
        let condition_is_known = matched.is_some() && self.mistakes.len() == mistakes_before;

        // Without a name the limits are named after the match, with letters and digits alone.
        let (name, owner) = if let Some(name) = raw.name.get() {
            self.refuse_no_route(name, shared.route_series);
            let name = self.name(name).unwrap_or_else(|| Arc::from(""));
            (Arc::clone(&name), name.to_string())
        } else {
            let title = route_names.default_name(matched);
            let slug = slug(&title);
            (title, slug)
        };

        if domain.is_some() {
            self.warn_of_unseen_answers(raw, &name);
        }

        let names: Vec<String> = condition.capture_names().map(str::to_owned).collect();
        let captures = match () {
            () if domain.is_some() => Captures::Domain,
            () if condition_is_known => Captures::Named(&names),
            () => Captures::Unknown,
        };
        let limits = raw.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
        let outcome = self.outcome(&raw.outcome);
        let availability = Availability::of(raw);
        let known_clients = match &domain {
            None => self.known_clients(&raw.known_clients, captures, availability, shared.channels),
            Some(_) => None,
        };
        let sessions = match &domain {
            None => self.sessions(&raw.sessions, captures, availability, shared.channels),
            Some(_) => None,
        };
        let limit_context =
            LimitContext { owner: &owner, captures, availability, lists: shared.lists, channels: shared.channels };
        let limits = self.limits(limits, limit_context, shared.limits);
        self.check_replaced(raw);

        if let Some(empty) = raw.only.get().filter(|only| only.is_empty()) {
            let help = "name a list, or remove `only`";
            self.mistakes.report(empty.at, "an empty `only` refuses every client", help);
        }
        let own = raw.upstream.get().and_then(|upstream| self.upstream(upstream, shared.upstreams));
        Route {
            name,
            condition,
            domain,
            upstream: own.or(shared.default).unwrap_or(UpstreamId(0)),
            only: self.references(&raw.only, shared.lists, ListUse::BeforeBody),
            limits,
            outcome,
            known_clients,
            sessions,
            deny_response: self.response(&raw.deny_response).map(Box::new),
            denied: self.denied_descriptors(raw),
        }
    }

    fn refuse_repeated_names(&mut self, routes: &[raw::route::Route]) {
        let mut lines: HashMap<&str, u32> = HashMap::new();
        for name in routes.iter().filter_map(|route| route.name.get()) {
            if let Some(line) = lines.insert(&name.value, name.at.line) {
                let message = format!("there are two routes called `{}`", name.value);
                let help = format!("the other one is at line {line}: logs and metrics could not tell them apart");
                self.mistakes.report(name.at, message, help);
            }
        }
    }
}

impl Compiler {
    /// The condition of a route. Parts with mistakes are left out.
    pub(super) fn condition(&mut self, matched: &Match, case: Case, lists: &Lists) -> Condition {
        match matched {
            Match::Short(text) => self.parsed(text, Condition::short(&text.value, case)).unwrap_or_default(),
            Match::Long(conditions) => self.long_condition(conditions, case, lists),
        }
    }

    fn long_condition(&mut self, raw: &Conditions, case: Case, lists: &Lists) -> Condition {
        if let (Some(_), Some(at)) = (raw.path.get(), raw.path_regex.key()) {
            self.mistakes.report(at, "`path` and `path_regex` exclude each other", "keep one of the two");
        }
        if let Some(empty) = raw.client.get().filter(|client| client.is_empty()) {
            let help = "name a list, or remove `client`";
            self.mistakes.report(empty.at, "an empty `client` matches no client", help);
        }
        let path = raw.path.get().and_then(|text| self.parsed(text, PathPattern::new(&text.value, case)));
        let path_regex = raw
            .path_regex
            .get()
            .and_then(|text| self.regex(text, |text| PathRegex::new(text, case), PathRegex::memory_usage));
        Condition {
            methods: raw.methods.get().and_then(|methods| self.methods(methods)),
            host: raw.host.get().and_then(|text| self.parse(text)),
            path,
            path_regex,
            headers: self.header_globs(&raw.header),
            queries: self.named_globs(&raw.query, "the name of a parameter"),
            cookies: self.named_globs(&raw.cookie, "the name of a cookie"),
            client: self.references(&raw.client, lists, ListUse::BeforeRoute).unwrap_or_default(),
        }
    }

    fn methods(&mut self, raw: &OneOrList<Text>) -> Option<MethodSet> {
        if raw.is_empty() {
            let help = "name some, or remove `methods`";
            self.mistakes.report(raw.at, "an empty `methods` matches no request", help);
            return None;
        }
        let parsed: Vec<_> = raw.items.iter().map(|method| self.parse(method)).collect();
        parsed.into_iter().collect()
    }

    pub(super) fn header_globs(&mut self, field: &Field<MapOf<Text>>) -> Vec<(FieldName, Glob)> {
        let mut result = Vec::new();
        for (name, glob) in entries(field) {
            if self.refuse_glob(name, "the name of a header", VALUES_ARE_GLOBS) {
                continue;
            }
            let Ok(header) = name.value.parse() else {
                let help = "header names are letters, digits and dashes: `x-api-key`";
                self.mistakes.report(name.at, format!("`{}` is not a header name", name.value), help);
                continue;
            };
            result.push((header, Glob::new(&glob.value)));
        }
        result
    }

    fn named_globs(&mut self, field: &Field<MapOf<Text>>, what: &str) -> Vec<(Box<str>, Glob)> {
        let named = entries(field).iter().filter(|(name, _)| !self.refuse_glob(name, what, VALUES_ARE_GLOBS));
        named.map(|(name, glob)| (name.value.as_str().into(), Glob::new(&glob.value))).collect()
    }
}

impl Compiler {
    /// The rule for sessions that a success on a route begins.
    pub(super) fn sessions(
        &mut self,
        field: &Field<Sessions>,
        captures: Captures<'_>,
        availability: Availability,
        channels: &Channels,
    ) -> Option<SessionRule> {
        let raw = field.get()?;
        if !availability.succeeds() {
            self.mistakes.report(
                field.key().unwrap_or(raw.at),
                "nobody can sign in here: no answer of this route is a success",
                format!("add what a success looks like: `outcome: {{success: {SUCCESS}}}`"),
            );
        }
        if raw.cookies.is_absent() && raw.tokens.is_absent() && !self.mistakes.is_unsure(raw.at) {
            self.mistakes.report(
                field.key().unwrap_or(raw.at),
                "`sessions` has neither `cookies` nor `tokens`",
                "name the cookie of a session, such as `cookies: [sessionid]`, or where a token stands: `tokens: [json.access_token]`",
            );
        }
        let keep = self.span(&raw.r#for, SessionRule::KEEP);
        if let Some(given) = raw.r#for.get().filter(|_| keep > LONGEST_KEEP.0) {
            let message = format!("`{}` is too long for a session", given.value);
            self.mistakes.report(
                given.at,
                message,
                format!("write at most `{LONGEST_KEEP}`: browsers keep no cookie longer"),
            );
        }
        let cookies = self.session_cookies(&raw.cookies);
        let tokens = self.session_tokens(&raw.tokens);
        let notify = self.notified(&raw.notify, channels);
        let of = self.names(&raw.of, captures)?;
        self.check_account(raw.of.get()?, &of);
        let is_fresh = raw.fresh.get().map_or(SessionRule::FRESH, |fresh| fresh.value);
        Some(SessionRule { of, cookies, tokens, keep, is_fresh, notify })
    }

    /// Reports what names no account.
    fn check_account(&mut self, raw: &OneOrList<raw::limit::KeyPart>, of: &KeySpec) {
        for (raw, part) in raw.items.iter().zip(&of.parts) {
            let help = "name the field of the user name, such as `param.username`";
            match (&part.selector, part.selector.subject()) {
                (Selector::User, _) => {
                    let message = "`user` is what sessions tell, not what people sign in with";
                    self.mistakes.report(raw.selector.at, message, help);
                }
                (Selector::Host, _) if of.parts.len() > 1 => {}
                (selector, SelectorSubject::Request) => {
                    self.mistakes.report(raw.selector.at, format!("`{selector}` names no account"), help);
                }
                (_, SelectorSubject::Account | SelectorSubject::Client) => {}
            }
        }
    }

    fn session_cookies(&mut self, field: &Field<OneOrList<Text>>) -> Vec<CookieNames> {
        self.check_cookie_names(field, "cookies");
        let names = field.get().map(|names| &names.items[..]).unwrap_or_default();
        for name in names.iter().filter(|name| name.value.chars().all(|letter| matches!(letter, '*' | '?'))) {
            let message = format!("`{}` would take every cookie for a session", name.value);
            self.mistakes.report(name.at, message, "name those alone that tell the application who is signed in");
        }
        names.iter().map(|name| CookieNames::new(&name.value)).collect()
    }

    fn session_tokens(&mut self, field: &Field<OneOrList<Text>>) -> Arc<[Box<str>]> {
        let Some(raw) = field.get() else { return Arc::default() };
        if raw.is_empty() {
            let help = "write where one stands, such as `json.access_token`, or remove `tokens`";
            self.mistakes.report(raw.at, "the list of tokens is empty", help);
        }
        for text in &raw.items {
            let help = "write where the token stands in the JSON body of the answer: `json.access_token`";
            if self.refuse_glob(text, "a dotted path", help) {
                continue;
            }
            let path = text.value.strip_prefix("json.");
            if path.is_none_or(|path| path.split('.').any(str::is_empty)) {
                self.mistakes.report(text.at, format!("`{}` is not a dotted path in JSON", text.value), help);
            }
        }
        raw.items.iter().map(|text| text.value.strip_prefix("json.").unwrap_or_default().into()).collect()
    }
}

// The `sessions` of a route.

/// Browsers keep no cookie longer.
const LONGEST_KEEP: Span = grammar::KEPT.longest();

/// Whether a route has `sessions`, so that requests may have a `user`.
pub(super) fn are_learned(document: &Document) -> bool {
    match &document.routes {
        Field::Absent => false,
        Field::Invalid => true,
        Field::Given { value, .. } => value.items.iter().any(|route| !route.sessions.is_absent()),
    }
}
