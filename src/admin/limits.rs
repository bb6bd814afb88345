//! The limits in force, and where one key of one of them stands.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Json;
use axum::extract::Path;
use axum::extract::RawQuery;
use axum::extract::State;
use axum::extract::rejection::PathRejection;
use http::StatusCode;
use serde::Serialize;
use tracing::info;

use super::AdminState;
use super::bans;
use super::problem::Problem;
use super::then;
use crate::decision::Policy;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::decision::explain::algorithm_name;
use crate::decision::operator::LimitQuery;
use crate::key::operator::name_of;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Detail;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Missing;
use crate::limit::OnFailure;
use crate::limit::Rates;
use crate::limit::Rule;
use crate::outcome::Outcome;
use crate::store::Store;
use crate::store::StoreError;
use crate::units::whole_seconds;

/// A limit as the configuration has it, defaults filled in.
#[derive(Debug, Serialize)]
pub(super) struct Described<'p> {
    name: &'p str,
    /// The selectors of its key; none is one key for all.
    key: Vec<String>,
    rates: Vec<RateOf>,
    concurrent: Option<NonZeroU32>,
    algorithm: Option<&'static str>,
    burst: Option<NonZeroU32>,
    buckets: Option<NonZeroU32>,
    cost: Option<NonZeroU32>,
    count: &'static str,
    /// What different values are counted of.
    distinct: Option<String>,
    /// The answer that forgets what was counted.
    reset_on: Option<&'static str>,
    missing: &'static str,
    then: then::Described<'p>,
    shadow: bool,
    unless: Vec<&'p str>,
    headers: &'static str,
    on_failure: &'static str,
    /// Whether it holds for every request.
    everywhere: bool,
    /// The routes it stands on.
    routes: Vec<&'p str>,
}

#[derive(Debug, Serialize)]
struct RateOf {
    limit: NonZeroU32,
    /// In seconds.
    window: u64,
}

/// Where a key stands.
#[derive(Debug, Serialize)]
pub(super) struct Standing {
    limit: String,
    /// The selectors of the key. Values are told to nobody, not even back.
    key: Vec<String>,
    allowed: bool,
    /// In whole seconds, rounded up; 0: now.
    retry_after: u64,
    /// Whether the limit is in force, or only decides as if it were.
    shadow: bool,
    /// The ban of this key, or of the address in it, whatever was counted.
    ban: Option<bans::Lasting>,
    rates: Vec<RateStanding>,
}

#[derive(Debug, Serialize)]
struct RateStanding {
    limit: NonZeroU32,
    /// In seconds.
    window: u64,
    remaining: u64,
    /// In whole seconds, rounded up.
    reset: u64,
}

pub(super) async fn list(State(state): State<Arc<AdminState>>) -> Json<serde_json::Value> {
    let policy = state.policy.load();
    let described: Vec<_> =
        (0..).map(LimitId).zip(&policy.limits).map(|(id, limit)| describe(&policy, id, limit)).collect();
    Json(serde_json::to_value(described).expect("names and numbers are JSON"))
}

/// Where a key stands; nothing is charged.
pub(super) async fn key_state(
    State(state): State<Arc<AdminState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<Standing>, Problem> {
    let asked = state.asked(name, query.as_deref(), Cost::OfLimit)?;
    let verdicts = state.store.look(&asked.batch()).await.map_err(away)?;
    let ban = state.ban_of(&asked);
    standing(asked, ban, &verdicts)
}

/// Decides and charges, as a request would: where the key is banned, none but attempts are charged. A slot in flight is given back at once: this request is over.
pub(super) async fn hit(
    State(state): State<Arc<AdminState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<Standing>, Problem> {
    let asked = state.asked(name, query.as_deref(), Cost::LimitQuery)?;
    let ban = state.ban_of(&asked);
    if ban.is_some() && !asked.counts_attempts() {
        let verdicts = state.store.look(&asked.batch()).await.map_err(away)?;
        return standing(asked, ban, &verdicts);
    }
    let verdicts = state.store.decide(&asked.batch()).await.map_err(away)?;
    if asked.is_in_flight() && verdicts.iter().all(Verdict::passes) {
        state.store.settle(&[Settlement::Release(asked.key)]).await.map_err(away)?;
    }
    standing(asked, ban, &verdicts)
}

/// Forgets what was counted under a key.
pub(super) async fn reset(
    State(state): State<Arc<AdminState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Problem> {
    let asked = state.asked(name, query.as_deref(), Cost::OfLimit)?;
    state.store.reset(&[asked.key]).await.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, NOT_FORGOTTEN))?;
    info!(limit = &*asked.limit, "the counters of one key of {} were reset by hand", asked.limit);
    Ok(StatusCode::NO_CONTENT)
}

/// What is charged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cost {
    /// What the limit says.
    OfLimit,
    /// What `cost` says.
    LimitQuery,
}

impl AdminState {
    fn asked(
        &self,
        name: Result<Path<String>, PathRejection>,
        query: Option<&str>,
        cost: Cost,
    ) -> Result<LimitQuery, Problem> {
        let bad = |detail| Problem::new(StatusCode::BAD_REQUEST, detail);
        let Ok(Path(name)) = name else { return Err(bad("the name of the limit is not UTF-8")) };
        let mut values: Vec<_> = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
        let mut charged = None;
        if cost == Cost::LimitQuery {
            let mut costs = values.extract_if(.., |(name, _)| name == "cost");
            if let Some((_, text)) = costs.next() {
                let number = text.parse().map_err(|_| bad("`cost` is a whole number from 1"))?;
                charged = Some(number);
            }
            if costs.next().is_some() {
                return Err(bad("several values for `cost`"));
            }
        }
        let policy = self.policy.load();
        LimitQuery::new(&policy, &name, &values, charged, &self.store.hashers())
            .map_err(|unclear| Problem::unclear(&unclear))
    }
}

fn away(error: StoreError) -> Problem {
    let why = match error {
        StoreError::Outage => AWAY,
        StoreError::SuccessorGone => SUCCESSOR_GONE,
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)
}

const AWAY: &str = "Redis does not answer, and `on_failure: deny` holds for this limit meanwhile";

const SUCCESSOR_GONE: &str = "this process has been taken over from, and the one that did is gone";

const NOT_FORGOTTEN: &str = "Redis does not answer: what it has counted may still stand";

fn standing(asked: LimitQuery, ban: Option<bans::Lasting>, verdicts: &[Verdict]) -> Result<Json<Standing>, Problem> {
    let [verdict] = verdicts else {
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the store gave no answer"));
    };
    let rates = asked.rule.rates().map_or(&[][..], Rates::as_slice);
    let rates = rates.iter().zip(&verdict.standings).map(|(rate, standing)| RateStanding {
        limit: rate.count,
        window: rate.per.as_secs(),
        remaining: standing.remaining,
        reset: whole_seconds(standing.reset),
    });
    Ok(Json(Standing {
        rates: rates.collect(),
        allowed: ban.is_none() && verdict.passes(),
        retry_after: match &ban {
            Some(ban) => ban.left,
            None => verdict.retry_after.map_or(0, |wait| whole_seconds(wait).max(1)),
        },
        ban,
        shadow: asked.shadow,
        limit: asked.limit.to_string(),
        key: asked.selectors,
    }))
}

fn describe<'p>(policy: &'p Policy, id: LimitId, limit: &'p Limit) -> Described<'p> {
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
    Described {
        name: &limit.name,
        key: limit.key.parts.iter().map(|part| name_of(&part.selector)).collect(),
        rates: rates.iter().map(|rate| RateOf { limit: rate.count, window: rate.per.as_secs() }).collect(),
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
        then: then::describe(policy, limit),
        shadow: limit.shadow,
        unless: known.into_iter().chain(limit.unless.iter().map(|&list| &*policy.list(list).list.name)).collect(),
        headers: match limit.headers {
            Detail::Full => "full",
            Detail::RetryAfter => "retry_after",
            Detail::None => "none",
        },
        on_failure: word(limit.on_failure),
        everywhere: policy.everywhere.contains(&id),
        routes: routes.map(|route| &*route.name).collect(),
    }
}

/// The word of the configuration.
pub(super) fn word(on_failure: OnFailure) -> &'static str {
    match on_failure {
        OnFailure::Local => "local",
        OnFailure::Allow => "allow",
        OnFailure::Deny => "deny",
    }
}
