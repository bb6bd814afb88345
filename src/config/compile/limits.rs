//! Limits. Limits of the same name are one limit, also in different places.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::availability::Availability;
use super::lists::Lists;
use crate::config::compile::document::Compiler;
use crate::config::compile::record::Channels;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::source::SourceRange;
use crate::rules::key::{KeyPart, Selector, SelectorSubject};
use crate::rules::limit::{Count, Detail, Limit, LimitId, ResetOutcome, Rule};
use crate::rules::outcome::Outcome;
use crate::rules::route::Route;

/// The limits of a configuration by name.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Every name in the configuration, so that no default name collides with one.
    chosen: HashSet<String>,
    /// The last number that was put after each default name that was taken.
    numbers: HashMap<String, usize>,
    /// With the place of the first definition.
    by_name: HashMap<Arc<str>, (LimitId, SourceRange)>,
    /// By `LimitId`.
    definitions: Vec<Limit>,
}

impl Limits {
    /// Reserves every name that the document gives to a limit.
    pub(super) fn reserving(document: &Document) -> Self {
        let everywhere = document.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
        let routes = document.routes.get().map(|routes| &routes.items[..]).unwrap_or_default();
        let on_routes = routes.iter().filter_map(|route| route.limits.get()).flat_map(|limits| &limits.items);
        let names = everywhere.iter().chain(on_routes).filter_map(|limit| limit.name.get());
        Self { chosen: names.map(|name| name.value.clone()).collect(), ..Self::default() }
    }

    /// Marks the parts of keys that are user names, under any field name: the parts that `known_clients` and `sessions`
    /// name, and the parts of limits with an outcome.
    pub(super) fn mark_names(&mut self, routes: &[Route]) {
        let known = routes.iter().filter_map(|route| Some(&route.known_clients.as_ref()?.of));
        let signed_in = routes.iter().filter_map(|route| Some(&route.sessions.as_ref()?.of));
        let named: Vec<&Selector> =
            known.chain(signed_in).flat_map(|of| &of.parts).map(|part| &part.selector).collect();
        for limit in &mut self.definitions {
            let has_outcome = limit.count.outcome().is_some() || limit.reset_on.is_some();
            let is_name = |part: &KeyPart| {
                part.selector.subject() == SelectorSubject::Account && (has_outcome || named.contains(&&part.selector))
            };
            let places = limit.key.parts.iter().enumerate().filter(|(_, part)| is_name(part));
            limit.key.names = places.map(|(place, _)| place).collect();
        }
    }

    pub(super) fn compiled(self) -> Vec<Limit> {
        self.definitions
    }

    /// The default name of the limit at `position`, from 1, under `owner`.
    fn default_name(&mut self, owner: &str, position: usize) -> Arc<str> {
        let taken = |name: &str| self.chosen.contains(name) || self.by_name.contains_key(name);
        let first = format!("{owner}-{position}");
        let mut name = first.clone();
        if taken(&name) {
            let number = self.numbers.entry(first.clone()).or_insert(1);
            while taken(&name) {
                *number += 1;
                name = format!("{first}-{number}");
            }
        }
        name.into()
    }
}

impl Compiler {
    pub(super) fn global_limits(
        &mut self,
        document: &Document,
        lists: &Lists,
        channels: &Channels,
        limits: &mut Limits,
    ) -> Vec<LimitId> {
        let Some(raw) = document.limits.get() else { return Vec::new() };
        let availability = Availability::everywhere(document);
        let context = LimitContext { owner: "limit", captures: Captures::Nowhere, availability, lists, channels };
        self.limits(&raw.items, context, limits)
    }

    /// The limits of one place, in order.
    pub(super) fn limits(
        &mut self,
        raw: &[raw::limit::Limit],
        context: LimitContext<'_>,
        limits: &mut Limits,
    ) -> Vec<LimitId> {
        let mut ids = Vec::with_capacity(raw.len());
        for (index, raw_limit) in raw.iter().enumerate() {
            let name = match raw_limit.name.get() {
                Some(text) => {
                    self.refuse_rate_name(text);
                    self.name(text)
                }
                None => Some(limits.default_name(context.owner, index + 1)),
            };
            // Both are checked before either ends this limit, so that every mistake is found.
            let limit = self.limit(raw_limit, context);
            let (Some(name), Some(limit)) = (name, limit) else { continue };
            let at = raw_limit.name.get().map_or(raw_limit.at, |name| name.at);
            ids.extend(self.intern(Limit { name, ..limit }, at, limits));
        }
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id));
        ids
    }

    /// Registers a limit under its name. The same definition again is the same limit.
    fn intern(&mut self, limit: Limit, at: SourceRange, limits: &mut Limits) -> Option<LimitId> {
        if let Some((id, first)) = limits.by_name.get(&limit.name) {
            let known = &limits.definitions[usize::from(id.0)];
            if *known != limit {
                self.mistakes.report(
                    at,
                    format!(
                        "the limit `{}` is defined differently at line {}: `{}` differs",
                        limit.name,
                        first.line,
                        difference(known, &limit)
                    ),
                    "limits of one name share one counter: make the two equal, or rename one",
                );
                return None;
            }
            return Some(*id);
        }
        let Ok(id) = u16::try_from(limits.definitions.len()).map(LimitId) else {
            self.mistakes.report(
                at,
                format!("there are more than {} limits", u16::MAX),
                "a configuration holds no more",
            );
            return None;
        };
        limits.by_name.insert(Arc::clone(&limit.name), (id, at));
        limits.definitions.push(limit);
        Some(id)
    }

    /// A limit without its name.
    fn limit(&mut self, raw: &raw::limit::Limit, context: LimitContext<'_>) -> Option<Limit> {
        let key = self.key(raw, context);
        let distinct = raw.distinct.get().and_then(|distinct| self.limit_part(distinct, context));
        let descriptors = self.descriptor_filter(raw, context);
        let (unless, unless_known) = if context.is_of_domain() {
            (Vec::new(), false)
        } else {
            self.unless(&raw.unless, context.lists, context.availability)
        };
        let then = self.then(raw, context.channels);
        let count = raw.count.get().map(|count| count.value).unwrap_or_default();
        let reset_on = raw.reset_on.get().map(|outcome| outcome.value);
        if !context.is_of_domain() {
            self.check_answers(raw, count, reset_on, context.availability);
        }
        let rule = self.rule(raw);
        let key = key?;
        if let (Some(part), Some(raw)) = (&distinct, raw.distinct.get())
            && key.parts.contains(part)
        {
            let message = format!("`{}` is part of the key, so each key has only one value of it", part.selector);
            self.mistakes.report(raw.selector.at, message, "count different values of another selector");
        }
        let reads_body = key.needs_body() || distinct.as_ref().is_some_and(|part| part.selector.needs_body());
        let depends_on_others = reads_body || count.outcome().is_some() || reset_on.is_some() || unless_known;
        Some(Limit {
            name: Arc::from(""),
            missing: raw.missing.get().map(|missing| missing.value).unwrap_or_default(),
            rule: rule?,
            count,
            distinct,
            descriptors,
            reset_on,
            then,
            shadow: raw.shadow.get().map_or(Limit::SHADOW, |shadow| shadow.value),
            unless,
            unless_known,
            headers: match raw.headers.get() {
                Some(headers) => headers.value,
                // Counts must not reveal the traffic of other people, nor the outcome of their logins.
                None if depends_on_others => Detail::RetryAfter,
                None => Detail::default(),
            },
            on_failure: self.on_failure(&raw.on_failure),
            leases: self.leases(&raw.leases),
            key,
        })
    }

    /// Reports `count` and `reset_on` that depend on outcomes that no answer can have.
    fn check_answers(
        &mut self,
        raw: &raw::limit::Limit,
        count: Count,
        reset_on: Option<ResetOutcome>,
        availability: Availability,
    ) {
        if let (Some(counted), Some(word)) = (count.outcome(), raw.count.get()) {
            let what = if counted == Outcome::Failure { "count: failures" } else { "count: successes" };
            self.check_awaited(word.at, what, counted, availability);
            if reset_on.map(Outcome::from) == Some(counted)
                && let Some(reset) = raw.reset_on.get()
            {
                let message = format!("`{what}` and `reset_on: {counted}` cancel each other");
                self.mistakes.report(reset.at, message, "keep one of the two, or reset on the other");
            }
        }
        if let (Some(awaited), Some(reset)) = (reset_on, raw.reset_on.get()) {
            self.check_awaited(reset.at, &format!("reset_on: {awaited}"), awaited.into(), availability);
        }
    }
}

/// The first key in which two limits differ.
fn difference(one: &Limit, other: &Limit) -> &'static str {
    match () {
        () if one.key != other.key => "key",
        () if one.distinct.is_some() != other.distinct.is_some() => "distinct",
        () if std::mem::discriminant(&one.rule) != std::mem::discriminant(&other.rule) => "concurrent",
        () => match (&one.rule, &other.rule) {
            (Rule::Rates { rates, .. }, Rule::Rates { rates: others, .. }) if rates != others => "rate",
            (Rule::Rates { algorithm, .. }, Rule::Rates { algorithm: others, .. }) if algorithm != others => {
                "algorithm"
            }
            (Rule::Rates { cost, .. }, Rule::Rates { cost: others, .. }) if cost != others => "cost",
            (Rule::Concurrent(slots), Rule::Concurrent(others)) if slots != others => "concurrent",
            (Rule::Distinct(rates), Rule::Distinct(others)) if rates != others => "rate",
            _ if one.distinct != other.distinct => "distinct",
            _ if one.descriptors.values != other.descriptors.values => "descriptor",
            _ if one.descriptors.except != other.descriptors.except => "except",
            _ if one.descriptors.entries != other.descriptors.entries => "entries",
            _ if one.descriptors.replaces != other.descriptors.replaces => "replaces",
            _ if one.count != other.count => "count",
            _ if one.reset_on != other.reset_on => "reset_on",
            _ if one.missing != other.missing => "missing",
            _ if (&one.unless, one.unless_known) != (&other.unless, other.unless_known) => "unless",
            _ if one.shadow != other.shadow => "shadow",
            _ if one.headers != other.headers => "headers",
            _ if one.on_failure != other.on_failure => "on_failure",
            _ if one.leases != other.leases => "leases",
            _ => "then",
        },
    }
}

// The place of a limit in the configuration.

/// The place of a limit, and what it may refer to there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitContext<'s> {
    /// The first part of the name of limits without one, before their number.
    pub owner: &'s str,
    pub captures: Captures<'s>,
    pub availability: Availability,
    pub lists: &'s Lists,
    pub channels: &'s Channels,
}

impl LimitContext<'_> {
    /// Whether the limit is on a route of a domain, and counts descriptors.
    pub(super) fn is_of_domain(self) -> bool {
        matches!(self.captures, Captures::Domain)
    }
}

/// Which names a limit's route captures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Captures<'c> {
    /// The limit is on no route.
    Nowhere,
    Named(&'c [String]),
    /// The route is for descriptors, which have no path.
    Domain,
    /// The route's match has a mistake of its own.
    Unknown,
}
