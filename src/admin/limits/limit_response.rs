//! A limit as the API shows it.

use std::num::NonZeroU32;

use serde::Serialize;
use utoipa::ToSchema;

use super::then::ThenResponse;
use super::words::AlgorithmWord;
use super::words::CountWord;
use super::words::HeadersWord;
use super::words::MissingWord;
use super::words::OnFailureWord;
use super::words::OutcomeWord;
use crate::decision::Policy;
use crate::key::operator::name_of;
use crate::limit::Algorithm;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rule;

/// A limit as the configuration has it, with defaults filled in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limit)]
pub(super) struct LimitResponse<'p> {
    name: &'p str,
    /// The selectors of the key. Without any, all requests share one key.
    key: Vec<String>,
    /// All of them must pass. None under `concurrent`.
    #[schema(inline)]
    rates: Vec<RateResponse>,
    /// The most requests in flight.
    #[schema(required, value_type = Option<u32>)]
    concurrent: Option<NonZeroU32>,
    #[schema(inline, required)]
    algorithm: Option<AlgorithmWord>,
    /// Only for token-bucket, where it differs from the rate's count.
    #[schema(required, value_type = Option<u32>)]
    burst: Option<NonZeroU32>,
    /// Only for bucketed-window, where they differ from the default.
    #[schema(required, value_type = Option<u32>)]
    buckets: Option<NonZeroU32>,
    /// What a request is charged. Null under `concurrent`.
    #[schema(required, value_type = Option<u32>)]
    cost: Option<NonZeroU32>,
    #[schema(inline)]
    count: CountWord,
    /// The selector whose different values are counted.
    #[schema(required)]
    distinct: Option<String>,
    /// The outcome that resets the limit.
    #[schema(inline, required)]
    reset_on: Option<OutcomeWord>,
    #[schema(inline)]
    missing: MissingWord,
    #[schema(inline)]
    then: ThenResponse<'p>,
    /// Decided and counted, never applied.
    shadow: bool,
    /// Whom it does not apply to: lists, and `known_client`.
    unless: Vec<&'p str>,
    #[schema(inline)]
    headers: HeadersWord,
    /// What to do while Redis is down.
    on_failure: OnFailureWord,
    /// Whether it applies to every request.
    everywhere: bool,
    /// The routes that name it.
    routes: Vec<&'p str>,
}

/// One rate of a limit.
#[derive(Debug, Serialize, ToSchema)]
struct RateResponse {
    /// How many requests may pass in one window.
    #[schema(value_type = u32)]
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
        let routes = policy.routes.all().iter().filter(|route| route.limits.contains(&id));
        let known = limit.unless_known.then_some("known_client");
        Self {
            name: &limit.name,
            key: limit.key.parts.iter().map(|part| name_of(&part.selector)).collect(),
            rates: rates.iter().map(|rate| RateResponse { limit: rate.count, window: rate.per.as_secs() }).collect(),
            concurrent,
            algorithm: algorithm.map(AlgorithmWord::from),
            burst,
            buckets,
            cost,
            count: limit.count.into(),
            distinct: limit.distinct.as_ref().map(|part| name_of(&part.selector)),
            reset_on: limit.reset_on.and_then(OutcomeWord::of),
            missing: limit.missing.into(),
            then: ThenResponse::of(policy, limit),
            shadow: limit.shadow,
            unless: known.into_iter().chain(limit.unless.iter().map(|&list| &*policy.list(list).list.name)).collect(),
            headers: limit.headers.into(),
            on_failure: limit.on_failure.into(),
            everywhere: policy.everywhere.contains(&id),
            routes: routes.map(|route| &*route.name).collect(),
        }
    }
}
