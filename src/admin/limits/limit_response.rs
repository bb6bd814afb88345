//! A limit as the API shows it.

use std::num::NonZeroU32;

use serde::Serialize;

use super::then::ThenResponse;
use crate::decision::Policy;
use crate::decision::explain::algorithm_name;
use crate::key::operator::name_of;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Detail;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Missing;
use crate::limit::OnFailure;
use crate::limit::Rule;
use crate::outcome::Outcome;

/// A limit as the configuration has it, with defaults filled in.
#[derive(Debug, Serialize)]
pub(super) struct LimitResponse<'p> {
    name: &'p str,
    /// The selectors of its key. Without any, all requests share one key.
    key: Vec<String>,
    rates: Vec<RateResponse>,
    concurrent: Option<NonZeroU32>,
    algorithm: Option<&'static str>,
    burst: Option<NonZeroU32>,
    buckets: Option<NonZeroU32>,
    cost: Option<NonZeroU32>,
    count: &'static str,
    /// The selector whose different values are counted.
    distinct: Option<String>,
    /// The outcome that resets the limit.
    reset_on: Option<&'static str>,
    missing: &'static str,
    then: ThenResponse<'p>,
    shadow: bool,
    unless: Vec<&'p str>,
    headers: &'static str,
    on_failure: &'static str,
    /// Whether it applies to every request.
    everywhere: bool,
    /// The routes that name it.
    routes: Vec<&'p str>,
}

#[derive(Debug, Serialize)]
struct RateResponse {
    limit: NonZeroU32,
    /// In seconds.
    window: u64,
}

impl<'p> LimitResponse<'p> {
    pub(super) fn of(policy: &'p Policy, id: LimitId, limit: &'p Limit) -> Self {
        let (rates, concurrent, algorithm, cost) = match &limit.rule {
            Rule::Rates { algorithm, rates, cost } => (rates.as_slice(), None, Some(*algorithm), Some(*cost)),
            Rule::Concurrent(most) => (&[][..], Some(*most), None, None),
            Rule::Distinct(rates) => (rates.as_slice(), None, None, None),
        };
        let (burst, buckets) = match algorithm {
            Some(Algorithm::TokenBucket { burst }) => (burst, None),
            Some(Algorithm::BucketedWindow { buckets }) => (None, buckets),
            _ => (None, None),
        };
        let routes = policy.routes.routes.iter().filter(|route| route.limits.contains(&id));
        let known = limit.unless_known.then_some("known_client");
        Self {
            name: &limit.name,
            key: limit.key.parts.iter().map(|part| name_of(&part.selector)).collect(),
            rates: rates.iter().map(|rate| RateResponse { limit: rate.count, window: rate.per.as_secs() }).collect(),
            concurrent,
            algorithm: algorithm.map(algorithm_name),
            burst,
            buckets,
            cost,
            count: match limit.count {
                Count::Requests => "requests",
                Count::Attempts => "attempts",
                Count::Failures => "failures",
                Count::Successes => "successes",
            },
            distinct: limit.distinct.as_ref().map(|part| name_of(&part.selector)),
            reset_on: limit.reset_on.map(Outcome::as_str),
            missing: match limit.missing {
                Missing::Count => "count",
                Missing::Skip => "skip",
                Missing::Deny => "deny",
            },
            then: ThenResponse::of(policy, limit),
            shadow: limit.shadow,
            unless: known.into_iter().chain(limit.unless.iter().map(|&list| &*policy.list(list).list.name)).collect(),
            headers: match limit.headers {
                Detail::Full => "full",
                Detail::RetryAfter => "retry_after",
                Detail::None => "none",
            },
            on_failure: on_failure_name(limit.on_failure),
            everywhere: policy.everywhere.contains(&id),
            routes: routes.map(|route| &*route.name).collect(),
        }
    }
}

/// `on_failure` as the configuration writes it.
pub(in crate::admin) fn on_failure_name(on_failure: OnFailure) -> &'static str {
    match on_failure {
        OnFailure::Local => "local",
        OnFailure::Allow => "allow",
        OnFailure::Deny => "deny",
    }
}
