//! Warnings about settings that are valid but probably a mistake. Each says the problem, why it matters and what to
//! write instead.
//!
//! The warnings of [`secrets`] are added while a file is read, all others once everything is compiled.

mod logins;
mod proxies;
mod secrets;

use crate::config::compile::document::Compiler;
use crate::config::raw::limit::{KeyPart, Limit};
use crate::config::raw::route::Match;
use crate::config::raw::server::Listen;
use crate::config::raw::{self, Document, Text};
use crate::config::source::SourceRange;
use crate::rules::key::Selector;
use crate::rules::limit::Count;
use crate::rules::route::{MethodSet, Route, UnreachableRoute, unreachable_routes};
use crate::words::units::nearest;

impl Compiler {
    /// Adds the warnings that need the whole document. A text with mistakes gets none: its meaning is unknown.
    pub(in crate::config::compile) fn warn(&mut self, document: &Document, routes: &[Route]) {
        if !self.mistakes.is_empty() {
            return;
        }
        self.warn_of_proxies(document);
        self.warn_of_unix_sockets(document);
        self.warn_of_loops(document);
        self.warn_of_overlaps(document);
        let raw = document.routes.get().map(|routes| &routes.items[..]).unwrap_or_default();
        self.warn_of_unreachable_routes(raw, routes);
        for (raw, route) in raw.iter().zip(routes).filter(|(_, route)| route.domain.is_none()) {
            self.warn_of_conditions(raw, route);
            self.warn_of_globs(raw);
            self.warn_of_outcome(raw, route);
            self.warn_of_login(raw, document);
            if let (Some(known), Some(given)) = (&route.known_clients, raw.known_clients.get()) {
                self.warn_of_hosts(given.of.key().unwrap_or(given.at), "known_clients", &known.of, route);
            }
            if let (Some(sessions), Some(given)) = (&route.sessions, raw.sessions.get()) {
                self.warn_of_hosts(given.of.key().unwrap_or(given.at), "sessions", &sessions.of, route);
            }
        }
        let everywhere = document.limits.get().into_iter().flat_map(|limits| &limits.items).map(|limit| (limit, None));
        let own = raw.iter().filter_map(|route| Some((route, route.limits.get()?)));
        let own = own.flat_map(|(route, limits)| limits.items.iter().map(move |limit| (limit, Some(route))));
        for (limit, route) in everywhere.chain(own) {
            self.warn_of_ban(limit);
            self.warn_of_reset(limit);
            self.warn_of_invented_key(limit, route);
            self.warn_of_unseen(limit, document);
        }
    }
}

impl Compiler {
    /// The first match wins, so a route after one that matches all of its requests never applies.
    pub(super) fn warn_of_unreachable_routes(&mut self, raw: &[raw::route::Route], routes: &[Route]) {
        for UnreachableRoute { route, earlier } in unreachable_routes(routes) {
            let (Some(at), Some(before)) = (place(&raw[route]), place(&raw[earlier])) else { continue };
            let message = format!(
                "no request reaches this route: `{}` at line {} matches all of them, and the first match wins",
                routes[earlier].name, before.line
            );
            self.mistakes.warn(
                at,
                message,
                "move this route before that one, make that one narrower, or remove this one",
            );
        }
    }
}

impl Compiler {
    /// Most proxies that ask show neither the body of a request nor its answer.
    pub(super) fn warn_of_unseen(&mut self, limit: &Limit, document: &Document) {
        let listeners = document.listen.get().map(|listen| &listen.items[..]).unwrap_or_default();
        if listeners.is_empty() || listeners.iter().any(Listen::forwards) {
            return;
        }
        if let Some(count) = limit.count.get().filter(|count| matches!(count.value, Count::Failures | Count::Successes))
        {
            self.mistakes.warn(
                count.at,
                "every listener serves decisions, and only Envoy's ext_proc shows answers: elsewhere each request counts as if it were never answered",
                "count `requests` or `attempts` here, or let the proxy forward these requests through a listener of the gateway",
            );
        }
        let parts = limit.key.get().map(|key| &key.items[..]).unwrap_or_default();
        let mut selectors = parts.iter().chain(limit.distinct.get()).flat_map(KeyPart::selectors);
        let in_body = selectors.find(|text| text.value.parse().is_ok_and(|selector: Selector| selector.needs_body()));
        if let Some(selector) = in_body {
            let message = format!(
                "every listener serves decisions, and most proxies that ask send no body along: `{}` is then the empty value, which all such requests share",
                selector.value
            );
            let help = "let the proxy send the body along (`forwardBody` of Traefik, `with_request_body` of Envoy), or forward these requests through a listener of the gateway";
            self.mistakes.warn(selector.at, message, help);
        }
    }
}

// Conditions that no request meets.

/// What browsers and applications send. No other registered method has a name that is near to one of these.
const COMMON_METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

impl Compiler {
    pub(super) fn warn_of_conditions(&mut self, raw: &raw::route::Route, route: &Route) {
        let Some(matched) = raw.r#match.get() else { return };
        if let Some(at) = place(raw) {
            self.warn_of_methods(at, route);
        }
        if let Match::Long(conditions) = matched {
            if let Some(regex) = conditions.path_regex.get() {
                self.warn_of_path_regex(regex);
            }
            if let Some(host) = conditions.host.get() {
                self.warn_of_letters(host);
            }
        }
    }

    /// A route for a method that does not exist protects nothing.
    fn warn_of_methods(&mut self, at: SourceRange, route: &Route) {
        for method in route.condition.methods.iter().flat_map(MethodSet::names) {
            if method == "CONNECT" {
                let message = "`CONNECT` is answered by the gateway, with 405: no request with it reaches a route";
                self.mistakes.warn(at, message, "name other methods, or none for all");
            } else if !COMMON_METHODS.contains(&method)
                && let Some(meant) = nearest(method, COMMON_METHODS)
            {
                let message =
                    format!("hardly any client sends a `{method}`: the requests that are meant take other routes");
                self.mistakes.warn(at, message, format!("did you mean `{meant}`?"));
            }
        }
    }

    /// Rules compare a path without what a client may vary at will: it has no slash at its end, nor two in a row.
    fn warn_of_path_regex(&mut self, regex: &Text) {
        let value = regex.value.trim();
        let begins = value.strip_prefix('^').and_then(|rest| rest.chars().next());
        let why = if value.len() > "^/$".len() && value.ends_with("/$") {
            "is compared with paths that have no slash at their end: it matches none"
        } else if begins.is_some_and(|first| first.is_ascii_alphanumeric()) {
            "is compared with paths, and each begins with a slash: it matches none"
        } else if value.contains("//") {
            "is compared with paths that have no two slashes in a row: it matches none"
        } else {
            return;
        };
        self.mistakes.warn(
            regex.at,
            format!("`{value}` {why}"),
            "write what `portcullis explain URL` shows as the path",
        );
    }

    /// Browsers send such a name in another spelling.
    fn warn_of_letters(&mut self, host: &Text) {
        if !host.value.is_ascii() {
            let message = format!("no client sends the host `{}` in these letters", host.value);
            self.mistakes.warn(host.at, message, "write the name as it stands in DNS, which begins with `xn--`");
        }
    }
}

// Routes that no request can match.

fn place(route: &raw::route::Route) -> Option<SourceRange> {
    Some(match route.r#match.get()? {
        Match::Short(text) => text.at,
        Match::Long(conditions) => conditions.at,
    })
}
