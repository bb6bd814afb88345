//! The `routes` section.

use std::collections::HashMap;
use std::sync::Arc;

use super::availability::Availability;
use super::channels::Channels;
use super::compiler::Compiler;
use super::default_names::RouteNames;
use super::default_names::slug;
use super::limit_context::Captures;
use super::limit_context::LimitContext;
use super::limits::Limits;
use super::lists::ListUse;
use super::lists::Lists;
use super::upstreams::Upstreams;
use crate::config::raw;
use crate::config::raw::Document;
use crate::record::RouteSeries;
use crate::route::Case;
use crate::route::Route;
use crate::route::UpstreamId;

/// What routes refer to and add to.
#[derive(Debug)]
pub(super) struct RouteContext<'s> {
    pub default: Option<UpstreamId>,
    pub upstreams: &'s mut Upstreams,
    pub lists: &'s Lists,
    pub channels: &'s Channels,
    pub limits: &'s mut Limits,
    pub route_series: RouteSeries,
}

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
            Some(false) | None => Case::Ignored,
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
            None => self.known_clients(&raw.known_clients, captures, availability),
            Some(_) => None,
        };
        let sessions = match &domain {
            None => self.sessions(&raw.sessions, captures, availability),
            Some(_) => None,
        };
        let limit_context =
            LimitContext { owner: &owner, captures, availability, lists: shared.lists, channels: shared.channels };
        let limits = self.limits(limits, limit_context, shared.limits);
        self.check_replaced(raw);

        if let Some(empty) = raw.only.get().filter(|only| only.items.is_empty()) {
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
