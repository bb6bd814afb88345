//! Limits: each name once, whatever places it stands in.

use std::collections::HashMap;
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::Compiler;
use super::key::Captures;
use super::lists::Lists;
use super::lists::Use;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::Spanned;
use crate::config::raw::leaf::Problem;
use crate::config::source::Place;
use crate::limit::Action;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Detail;
use crate::limit::InvalidRule;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Missing;
use crate::limit::Rule;
use crate::limit::Then;

/// The limits of a configuration by name.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Names that people chose, so that no made one collides with them.
    chosen: HashSet<String>,
    /// With the place of the definition.
    by_name: HashMap<Arc<str>, (LimitId, Place)>,
    /// By `LimitId`.
    definitions: Vec<Limit>,
}

impl Limits {
    /// Knows every name that the document gives to a limit.
    pub(super) fn reserving(document: &Document) -> Self {
        let everywhere = document.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
        let routes = document.routes.get().map(|routes| &routes.items[..]).unwrap_or_default();
        let on_routes = routes.iter().filter_map(|route| route.limits.get()).flat_map(|limits| &limits.items);
        let names = everywhere.iter().chain(on_routes).filter_map(|limit| limit.name.get());
        Self { chosen: names.map(|name| name.value.clone()).collect(), ..Self::default() }
    }

    pub(super) fn compiled(self) -> Vec<Limit> {
        self.definitions
    }

    /// A name for the limit that stands at `position`, from 1, under `owner`.
    fn made(&self, owner: &str, position: usize) -> Arc<str> {
        let taken = |name: &str| self.chosen.contains(name) || self.by_name.contains_key(name);
        let first = format!("{owner}-{position}");
        let mut name = first.clone();
        for attempt in 2.. {
            if !taken(&name) {
                break;
            }
            name = format!("{first}-{attempt}");
        }
        name.into()
    }
}

impl Compiler {
    pub(super) fn global_limits(&mut self, document: &Document, lists: &Lists, limits: &mut Limits) -> Vec<LimitId> {
        let Some(raw) = document.limits.get() else { return Vec::new() };
        self.limits(&raw.items, "limit", Captures::Nowhere, lists, limits)
    }

    /// The limits of one place, in order.
    pub(super) fn limits(
        &mut self,
        raw: &[raw::limit::Limit],
        owner: &str,
        captures: Captures<'_>,
        lists: &Lists,
        limits: &mut Limits,
    ) -> Vec<LimitId> {
        let mut ids = Vec::with_capacity(raw.len());
        for (index, raw_limit) in raw.iter().enumerate() {
            let name = match raw_limit.name.get() {
                Some(text) => self.name(text),
                None => Some(limits.made(owner, index + 1)),
            };
            // Everything is checked, so that every mistake is found, before one of them ends it.
            let limit = self.limit(raw_limit, captures, lists);
            let (Some(name), Some(limit)) = (name, limit) else { continue };
            let at = raw_limit.name.get().map_or(raw_limit.at, |name| name.at);
            ids.extend(self.intern(Limit { name, ..limit }, at, limits));
        }
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id));
        ids
    }

    /// One limit for one name: the same definition again is the same limit.
    fn intern(&mut self, limit: Limit, at: Place, limits: &mut Limits) -> Option<LimitId> {
        if let Some((id, first)) = limits.by_name.get(&limit.name) {
            let known = &limits.definitions[usize::from(id.0)];
            if *known != limit {
                self.mistakes.report(
                    at,
                    format!(
                        "the limit `{}` is another one at line {}: `{}` differs",
                        limit.name,
                        first.line,
                        difference(known, &limit)
                    ),
                    "a name is one limit with one counter: make the two alike, or give one another name",
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
    fn limit(&mut self, raw: &raw::limit::Limit, captures: Captures<'_>, lists: &Lists) -> Option<Limit> {
        let key = self.key(raw, captures);
        let unless = self.references(&raw.unless, lists, Use::Unless).unwrap_or_default();
        let then = self.then(&raw.then);
        let rule = self.rule(raw);
        let key = key?;
        let headers = match raw.headers.get().map(|headers| headers.value) {
            Some(raw::limit::Detail::RetryAfter) => Detail::RetryAfter,
            Some(raw::limit::Detail::None) => Detail::None,
            // What stands in a body may be another's: one probe must not tell of their traffic.
            None if key.needs_body() => Detail::RetryAfter,
            Some(raw::limit::Detail::Full) | None => Detail::Full,
        };
        Some(Limit {
            name: Arc::from(""),
            key,
            missing: match raw.missing.get().map(|missing| missing.value) {
                Some(raw::limit::Missing::Skip) => Missing::Skip,
                Some(raw::limit::Missing::Deny) => Missing::Deny,
                Some(raw::limit::Missing::Count) | None => Missing::Count,
            },
            rule: rule?,
            count: match raw.count.get().map(|count| count.value) {
                Some(raw::limit::Count::Attempts) => Count::Attempts,
                Some(raw::limit::Count::Requests) | None => Count::Requests,
            },
            distinct: None,
            reset_on: None,
            then,
            shadow: raw.shadow.get().is_some_and(|shadow| shadow.value),
            unless,
            unless_known: false,
            headers,
            on_failure: self.on_failure(&raw.on_failure),
        })
    }

    fn then(&mut self, then: &Field<raw::limit::Then>) -> Then {
        match then.get() {
            Some(raw::limit::Then::DenyWith(response)) => {
                Then { action: Action::Deny(Some(Box::new(self.deny_response(response)))), notify: Vec::new() }
            }
            Some(raw::limit::Then::Deny) | None => Then::default(),
        }
    }

    fn rule(&mut self, raw: &raw::limit::Limit) -> Option<Rule> {
        if raw.rate.is_absent() && raw.concurrent.is_absent() {
            self.mistakes.report(
                raw.at,
                "a limit needs `rate` or `concurrent`",
                "write `rate: 10/minute`, or `concurrent: 20` for requests in flight",
            );
            return None;
        }
        if let (Some(_), Some(at)) = (raw.rate.key(), raw.concurrent.key()) {
            self.mistakes.report(at, "`rate` and `concurrent` exclude each other", "write two limits, one with each");
            return None;
        }
        if raw.rate.is_absent() {
            self.refuse_beside_concurrent(raw);
            return self.count(&raw.concurrent).map(Rule::Concurrent);
        }
        let algorithm = self.algorithm(raw);
        let cost = match self.count(&raw.cost) {
            None if !raw.cost.is_absent() => return None,
            cost => cost.unwrap_or(NonZeroU32::MIN),
        };
        let rates = raw.rate.get()?.value.clone();
        let rule = Rule::Rates { algorithm: algorithm?, rates, cost };
        if let Err(error) = rule.check() {
            let blamed = match error {
                InvalidRule::CostAboveCount { .. } | InvalidRule::CostAboveBurst { .. } => place(&raw.cost),
                InvalidRule::TooManyBuckets { .. } => place(&raw.buckets),
                InvalidRule::TooManyToLog { .. } | InvalidRule::TooManyDistinct { .. } => None,
            };
            let at = blamed.or(raw.rate.get().map(|rate| rate.at)).unwrap_or(raw.at);
            Problem::from(error).report(at, &mut self.mistakes);
            return None;
        }
        Some(rule)
    }

    /// The algorithm with its own options; options of others are refused.
    fn algorithm(&mut self, raw: &raw::limit::Limit) -> Option<Algorithm> {
        let chosen = match &raw.algorithm {
            Field::Absent => raw::limit::Algorithm::SlidingWindowLog,
            Field::Wrong => return None,
            Field::Given { value, .. } => value.value,
        };
        if !matches!(chosen, raw::limit::Algorithm::TokenBucket) {
            self.refuse_option(
                raw.burst.key(),
                "`burst` is an option of `token-bucket`",
                "add `algorithm: token-bucket`, or remove it",
            );
        }
        if !matches!(chosen, raw::limit::Algorithm::BucketedWindow) {
            self.refuse_option(
                raw.buckets.key(),
                "`buckets` is an option of `bucketed-window`",
                "add `algorithm: bucketed-window`, or remove it",
            );
        }
        Some(match chosen {
            raw::limit::Algorithm::SlidingWindowLog => Algorithm::SlidingWindowLog,
            raw::limit::Algorithm::SlidingWindowCounter => Algorithm::SlidingWindowCounter,
            raw::limit::Algorithm::FixedWindow => Algorithm::FixedWindow,
            raw::limit::Algorithm::BucketedWindow => Algorithm::BucketedWindow { buckets: self.count(&raw.buckets) },
            raw::limit::Algorithm::TokenBucket => Algorithm::TokenBucket { burst: self.count(&raw.burst) },
        })
    }

    fn refuse_beside_concurrent(&mut self, raw: &raw::limit::Limit) {
        let attempts = raw.count.get().filter(|count| count.value == raw::limit::Count::Attempts);
        let keys = [
            ("algorithm", raw.algorithm.key()),
            ("burst", raw.burst.key()),
            ("buckets", raw.buckets.key()),
            ("cost", raw.cost.key()),
            ("count: attempts", attempts.and(raw.count.key())),
        ];
        for (key, at) in keys {
            self.refuse_option(
                at,
                &format!("`{key}` has no meaning with `concurrent`, which counts requests in flight"),
                "remove it",
            );
        }
    }

    fn refuse_option(&mut self, at: Option<Place>, message: &str, help: &str) {
        if let Some(at) = at {
            self.mistakes.report(at, message, help);
        }
    }
}

fn place<T>(field: &Field<Spanned<T>>) -> Option<Place> {
    field.get().map(|value| value.at)
}

/// The first key in which two limits differ.
fn difference(one: &Limit, other: &Limit) -> &'static str {
    match () {
        () if one.key != other.key => "key",
        () if std::mem::discriminant(&one.rule) != std::mem::discriminant(&other.rule) => "concurrent",
        () => match (&one.rule, &other.rule) {
            (Rule::Rates { rates, .. }, Rule::Rates { rates: others, .. }) if rates != others => "rate",
            (Rule::Rates { algorithm, .. }, Rule::Rates { algorithm: others, .. }) if algorithm != others => {
                "algorithm"
            }
            (Rule::Rates { cost, .. }, Rule::Rates { cost: others, .. }) if cost != others => "cost",
            (Rule::Concurrent(slots), Rule::Concurrent(others)) if slots != others => "concurrent",
            _ if one.count != other.count => "count",
            _ if one.missing != other.missing => "missing",
            _ if one.unless != other.unless => "unless",
            _ if one.shadow != other.shadow => "shadow",
            _ if one.headers != other.headers => "headers",
            _ if one.on_failure != other.on_failure => "on_failure",
            _ => "then",
        },
    }
}
