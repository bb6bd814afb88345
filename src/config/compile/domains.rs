//! Routes of domains, whose limits count descriptors instead of requests.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::compile::document::Compiler;
use crate::config::compile::limits::LimitContext;
use crate::config::raw::forms::{MapOf, OneOrList};
use crate::config::raw::limit::Limit;
use crate::config::raw::route::{Conditions, Match, Route};
use crate::config::raw::then::Then;
use crate::config::raw::{Field, Spanned, Text};
use crate::config::source::SourceRange;
use crate::rules::limit::{Count, DescriptorFilter, EntrySet};
use crate::words::glob::Glob;

/// The domain that a route is for; `None`: it is for requests.
pub(super) fn domain_of(route: &Route) -> Option<&Text> {
    match route.r#match.get()? {
        Match::Short(_) => None,
        Match::Long(conditions) => conditions.domain.get(),
    }
}

impl Compiler {
    /// The domain of a route. Reports keys that have no meaning on such a route.
    pub(super) fn domain(&mut self, raw: &Route) -> Option<Arc<str>> {
        let (domain, Some(Match::Long(conditions))) = (domain_of(raw)?, raw.r#match.get()) else { return None };
        self.refuse_glob(domain, "the name of a domain", "write a route for each domain");
        if domain.value.is_empty() {
            let help = "write the domain that the proxy asks with: `match: {domain: my-domain}`";
            self.mistakes.report(domain.at, "a domain must not be empty", help);
        }
        for (key, at) in conditions_of_requests(conditions) {
            let message = format!("`{key}` is a condition of requests, and a domain has descriptors instead");
            self.refuse_in_domain(at, message, "keep `domain` alone; requests need a route of their own");
        }
        for (key, at) in settings_of_requests(raw) {
            let message = format!("`{key}` has no meaning in a domain: the proxy that asks has the request");
            self.refuse_in_domain(at, message, "remove it");
        }
        Some(domain.value.as_str().into())
    }

    /// Warns of what waits for an answer or for its end, on the route of that name, which is for a domain.
    pub(super) fn warn_of_unseen_answers(&mut self, raw: &Route, name: &str) {
        let unseen = format!("route {name} is for a domain, and sees no answers");
        let mut warn = |at: Option<SourceRange>, message: String, instead: &str, what: &str| {
            if let Some(at) = at {
                let help = format!("{instead}, or let Envoy ask with ext_proc, which sees {what}");
                self.mistakes.warn(at, message, help);
            }
        };
        warn(raw.outcome.key(), format!("{unseen}: this `outcome` is never read"), "remove it", "answers");
        for limit in raw.limits.get().map(|limits| &limits.items[..]).unwrap_or_default() {
            let waits = |count: &&Spanned<Count>| matches!(count.value, Count::Failures | Count::Successes);
            warn(
                limit.count.get().filter(waits).map(|count| count.at),
                format!("{unseen}: every call keeps its place in the count, whatever its request came to"),
                "write `count: requests`",
                "answers",
            );
            warn(limit.reset_on.key(), format!("{unseen}: this limit is never reset"), "remove `reset_on`", "answers");
            warn(
                limit.concurrent.key(),
                format!("route {name} is for a domain, and sees no end of a request: this limit is skipped"),
                "write a `rate`",
                "the end",
            );
        }
    }

    /// Reports a domain that two routes are for.
    pub(super) fn refuse_repeated_domains(&mut self, routes: &[Route]) {
        let mut lines: HashMap<&str, u32> = HashMap::new();
        for domain in routes.iter().filter_map(domain_of) {
            if let Some(line) = lines.insert(&domain.value, domain.at.line) {
                let message = format!("there are two routes for the domain `{}`", domain.value);
                let help = format!("the other one is at line {line}: write all limits of a domain on one route");
                self.mistakes.report(domain.at, message, help);
            }
        }
    }

    /// The descriptors that a limit meets. Reports keys that have no meaning in a domain, or outside of one.
    pub(super) fn descriptor_filter(&mut self, raw: &Limit, context: LimitContext<'_>) -> DescriptorFilter {
        if context.is_of_domain() {
            self.check_limit_of_domain(raw);
        } else {
            let keys = [
                ("descriptor", raw.descriptor.key()),
                ("except", raw.except.key()),
                ("entries", raw.entries.key()),
                ("replaces", raw.replaces.key()),
            ];
            for (key, at) in keys {
                let message = format!("`{key}` is for limits of a domain, and this limit counts requests");
                self.refuse_in_domain(at, message, "move the limit to a route with `match: {domain: NAME}`");
            }
        }
        let names = raw.replaces.get().map(|names| &names.items[..]).unwrap_or_default();
        let replaces = names.iter().map(|name| name.value.as_str().into()).collect();
        DescriptorFilter { replaces, ..self.filter(&raw.descriptor, &raw.except, &raw.entries) }
    }

    /// The descriptors that a route denies.
    pub(super) fn denied_descriptors(&mut self, raw: &Route) -> Vec<DescriptorFilter> {
        if domain_of(raw).is_none() {
            let help = "write `only` or `access.deny` for clients, or a route with `match: {domain: NAME}`";
            self.refuse_in_domain(raw.deny.key(), "`deny` denies descriptors, and this route is for requests", help);
        }
        let denied = raw.deny.get().map(|denied| &denied.items[..]).unwrap_or_default();
        denied.iter().map(|denied| self.filter(&denied.descriptor, &denied.except, &denied.entries)).collect()
    }

    /// Reports names in `replaces` that no other limit of the domain has.
    pub(super) fn check_replaced(&mut self, raw: &Route) {
        let limits = raw.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
        for limit in limits {
            let others = limits.iter().filter(|other| other.at != limit.at).filter_map(|other| other.name.get());
            let known: Vec<&str> = others.map(|name| name.value.as_str()).collect();
            for name in limit.replaces.get().map(|names| &names.items[..]).unwrap_or_default() {
                if !known.contains(&name.value.as_str()) {
                    self.unknown_name(name, "other limit of this domain", "limits", &known);
                }
            }
        }
    }

    fn filter(
        &mut self,
        descriptor: &Field<MapOf<Text>>,
        except: &Field<MapOf<OneOrList<Text>>>,
        entries: &Field<Spanned<EntrySet>>,
    ) -> DescriptorFilter {
        let glob = |text: &Text| Glob::of_entry(&text.value);
        DescriptorFilter {
            values: self.entry_globs(descriptor, glob),
            except: self.entry_globs(except, |globs| globs.items.iter().map(glob).collect()),
            entries: entries.get().map(|entries| entries.value).unwrap_or_default(),
            replaces: Vec::new(),
        }
    }

    fn entry_globs<T, G>(&mut self, field: &Field<MapOf<T>>, glob: impl Fn(&T) -> G) -> Vec<(Box<str>, G)> {
        let mut named = Vec::new();
        for (name, value) in field.get().map(|map| &map.entries[..]).unwrap_or_default() {
            let help = "write the whole name; the value after the colon may be a glob";
            if !self.refuse_glob(name, "the name of an entry", help) {
                named.push((name.value.as_str().into(), glob(value)));
            }
        }
        named
    }

    fn check_limit_of_domain(&mut self, raw: &Limit) {
        let lists = "a domain has descriptors, and no client";
        for (at, message, help) in [
            (
                raw.cost.key(),
                "`cost` has no meaning in a domain: each call says its cost as `hits_addend`",
                "remove it",
            ),
            (
                raw.missing.key(),
                "`missing` has no meaning in a domain: a descriptor without an entry of the key does not meet the limit",
                "remove it",
            ),
            (
                raw.unless.key(),
                &*format!("`unless` has no meaning in a domain: {lists}"),
                "name values that are free: `except: {user: [root]}`",
            ),
        ] {
            self.refuse_in_domain(at, message, help);
        }
        if let Some(Then::Long(actions)) = raw.then.get() {
            let held = "a call is answered at once, and what becomes of the request is the proxy's decision";
            let written = "the proxy writes the answer";
            for (word, at) in actions.given().filter(|(word, _)| *word != "ban") {
                let reason = if ["challenge", "deny"].contains(&word) { written } else { held };
                let message = format!("`{word}` has no meaning in a domain: {reason}");
                self.refuse_in_domain(
                    Some(at),
                    message,
                    "remove it: a limit without `then` denies, and `ban` denies for a while",
                );
            }
        }
    }

    fn refuse_in_domain(&mut self, at: Option<SourceRange>, message: impl Into<String>, help: &str) {
        if let Some(at) = at {
            self.mistakes.report(at, message, help);
        }
    }
}

fn conditions_of_requests(raw: &Conditions) -> [(&'static str, Option<SourceRange>); 8] {
    [
        ("methods", raw.methods.key()),
        ("path", raw.path.key()),
        ("path_regex", raw.path_regex.key()),
        ("host", raw.host.key()),
        ("header", raw.header.key()),
        ("query", raw.query.key()),
        ("cookie", raw.cookie.key()),
        ("client", raw.client.key()),
    ]
}

fn settings_of_requests(raw: &Route) -> [(&'static str, Option<SourceRange>); 6] {
    [
        ("case_sensitive", raw.case_sensitive.key()),
        ("upstream", raw.upstream.key()),
        ("only", raw.only.key()),
        ("known_clients", raw.known_clients.key()),
        ("sessions", raw.sessions.key()),
        ("deny_response", raw.deny_response.key()),
    ]
}
