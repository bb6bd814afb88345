//! The limits in force, and the state of one key of a limit.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use http::StatusCode;
use tracing::info;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::AdminState;
use crate::admin::bans::ban_of;
use crate::admin::openapi::KeyParts;
use crate::admin::problem::Problem;
use crate::api::bans::KeyBanResponse;
use crate::api::limits::{KeyStateResponse, LimitResponse, RateResponse, RateStateResponse, ThenResponse};
use crate::rules::decision::operator::LimitQuery;
use crate::rules::decision::{Policy, Settlement, Verdict};
use crate::rules::key::spec::name_of;
use crate::rules::limit::{Algorithm, Limit, LimitId, Rates, Rule};
use crate::store::{Store, StoreError};
use crate::words::units::whole_seconds;

// Lists the limits in force.

/// Every limit in force
#[utoipa::path(
    get,
    path = "/api/v1/limits",
    responses((
        status = 200,
        description = "In the order of the configuration, global limits first.",
        body = Vec<LimitResponse>,
    ))
)]
pub(super) async fn list(State(state): State<Arc<AdminState>>) -> Json<serde_json::Value> {
    let policy = state.policy.load();
    let limits: Vec<_> =
        (0..).map(LimitId).zip(&policy.limits).map(|(id, limit)| limit_response(&policy, id, limit)).collect();
    Json(serde_json::to_value(limits).expect("names and numbers are JSON"))
}

// A limit as the API shows it.

fn limit_response(policy: &Policy, id: LimitId, limit: &Limit) -> LimitResponse {
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
    LimitResponse {
        name: limit.name.to_string(),
        key: limit.key.parts.iter().map(|part| name_of(&part.selector)).collect(),
        rates: rates.iter().map(|rate| RateResponse { limit: rate.count, window: rate.per.as_secs() }).collect(),
        concurrent,
        algorithm: algorithm.map(Algorithm::name),
        burst,
        buckets,
        cost,
        count: limit.count,
        distinct: limit.distinct.as_ref().map(|part| name_of(&part.selector)),
        reset_on: limit.reset_on,
        missing: limit.missing,
        then: then_response(policy, limit),
        shadow: limit.shadow,
        unless: known
            .into_iter()
            .chain(limit.unless.iter().map(|&list| &*policy.list(list).list.name))
            .map(str::to_owned)
            .collect(),
        headers: limit.headers,
        on_failure: limit.on_failure,
        everywhere: policy.everywhere.contains(&id),
        routes: routes.map(|route| route.name.to_string()).collect(),
    }
}

/// What a limit does when it is reached.
fn then_response(policy: &Policy, limit: &Limit) -> ThenResponse {
    let channels = limit.then.notify.iter().filter_map(|id| policy.channels.get(usize::from(id.0)));
    ThenResponse::of(&limit.then.action, channels.map(ToString::to_string).collect())
}

// Reads, charges and resets one key of a limit.

const REDIS_DOWN: &str = "Redis does not answer, and this limit has `on_failure: deny`";

const TOO_BUSY: &str = "this gateway is too busy to ask Redis";

const SUCCESSOR_GONE: &str = "another process took over from this one, and that process is gone";

const NOT_RESET: &str = "Redis does not answer: the limit may not be reset";

/// The state of a key
///
/// Charges nothing.
#[utoipa::path(
    get,
    path = "/api/v1/limits/{name}/state",
    params(("name" = String, Path, description = "The name of a limit, percent-encoded."), KeyParts),
    responses(
        (status = 200, description = "The state that the next request would find.", body = KeyStateResponse),
        (status = 400, description = "A part of the key has no value or several, or the key has no such part. The \
            detail names the parts."),
        (status = 404, description = "There is no limit of that name. The detail suggests a similar name."),
        (status = 503, description = "Redis does not answer, and the limit has `on_failure: deny`."),
    )
)]
pub(super) async fn key_state(
    State(state): State<Arc<AdminState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<KeyStateResponse>, Problem> {
    let query = key_query(&state, name, query.as_deref(), CostParameter::NotAllowed)?;
    let verdicts = state.store.look(&query.batch()).await.map_err(unavailable)?;
    let ban = ban_of(&state, &query);
    key_state_response(query, ban, &verdicts)
}

/// Decide and charge, as a request would
///
/// For applications that ask before they act. Only this limit decides. Lists, `unless` and other limits do not. While the key
/// is banned, only limits that count attempts are charged. Under `concurrent`, a slot is taken and released at once. The
/// status 200 says only that there is a decision. `allowed` is the decision.
#[utoipa::path(
    post,
    path = "/api/v1/limits/{name}/hit",
    params(
        ("name" = String, Path, description = "The name of a limit, percent-encoded."),
        KeyParts,
        ("cost" = Option<u32>, Query, minimum = 1, description = "How much to charge. Left out: the cost of the limit."),
    ),
    responses(
        (status = 200, description = "The decision, and the state of the key after it.", body = KeyStateResponse),
        (status = 400, description = "A part of the key has no value or several, or the key has no such part. The \
            detail names the parts."),
        (status = 404, description = "There is no limit of that name. The detail suggests a similar name."),
        (status = 503, description = "Redis does not answer, and the limit has `on_failure: deny`."),
    )
)]
pub(super) async fn hit(
    State(state): State<Arc<AdminState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<KeyStateResponse>, Problem> {
    let query = key_query(&state, name, query.as_deref(), CostParameter::Allowed)?;
    let ban = ban_of(&state, &query);
    if ban.is_some() && !query.counts_attempts() {
        let verdicts = state.store.look(&query.batch()).await.map_err(unavailable)?;
        return key_state_response(query, ban, &verdicts);
    }
    let verdicts = state.store.decide(&query.batch()).await.map_err(unavailable)?;
    if query.is_in_flight() && verdicts.iter().all(Verdict::passes) {
        let slots: Vec<_> = query.keys.iter().map(|queried| Settlement::Release(queried.key)).collect();
        state.store.settle(&slots).await.map_err(unavailable)?;
    }
    key_state_response(query, ban, &verdicts)
}

/// Reset a limit for one key
///
/// Every gateway on the same store knows within a second.
#[utoipa::path(
    delete,
    path = "/api/v1/limits/{name}/state",
    params(("name" = String, Path, description = "The name of a limit, percent-encoded."), KeyParts),
    responses(
        (status = 204, description = "The limit is reset for this key."),
        (status = 400, description = "A part of the key has no value or several, or the key has no such part. The \
            detail names the parts."),
        (status = 404, description = "There is no limit of that name. The detail suggests a similar name."),
        (status = 503, description = "Redis does not answer: the limit may not be reset."),
    )
)]
pub(super) async fn reset(
    State(state): State<Arc<AdminState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Problem> {
    let query = key_query(&state, name, query.as_deref(), CostParameter::NotAllowed)?;
    let keys: Vec<_> = query.keys.iter().map(|queried| queried.key).collect();
    let reset = state.store.reset(&keys).await;
    reset.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, NOT_RESET))?;
    info!(limit = &*query.limit, "an operator reset the limit {} for one key", query.limit);
    Ok(StatusCode::NO_CONTENT)
}

fn unavailable(error: StoreError) -> Problem {
    let reason = match error {
        StoreError::Outage => REDIS_DOWN,
        StoreError::Overload => TOO_BUSY,
        StoreError::SuccessorGone => SUCCESSOR_GONE,
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}

// Reads which limit and key a request names.

/// Whether the query may have a `cost`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CostParameter {
    Allowed,
    /// The query charges nothing, so `cost` is read as a part of the key.
    NotAllowed,
}

/// The limit of the path, and the key of the query's parameters.
fn key_query(
    state: &AdminState,
    name: Result<Path<String>, PathRejection>,
    query: Option<&str>,
    cost_parameter: CostParameter,
) -> Result<LimitQuery, Problem> {
    let Ok(Path(name)) = name else { return Err(Problem::bad_request("the name of the limit is not UTF-8")) };
    let mut values: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
    let mut cost = None;
    if cost_parameter == CostParameter::Allowed {
        let mut costs = values.extract_if(.., |(name, _)| name == "cost");
        if let Some((_, text)) = costs.next() {
            let number = text.parse().map_err(|_| Problem::bad_request("`cost` is a whole number from 1"))?;
            cost = Some(number);
        }
        if costs.next().is_some() {
            return Err(Problem::bad_request("several values for `cost`"));
        }
    }
    let policy = state.policy.load();
    LimitQuery::new(&policy, &name, &values, cost, &state.store.hashers())
        .map_err(|error| Problem::invalid_query(&error))
}

// The state of one key as the API shows it.

fn key_state_response(
    query: LimitQuery,
    ban: Option<KeyBanResponse>,
    verdicts: &[Verdict],
) -> Result<Json<KeyStateResponse>, Problem> {
    if verdicts.is_empty() {
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the store gave no answer"));
    }
    let rates = query.rule.rates().map_or(&[][..], Rates::as_slice);
    // A value that may be several names stands where the first of them refuses it.
    let rates = rates.iter().enumerate().filter_map(|(place, rate)| {
        let standings = verdicts.iter().filter_map(|verdict| verdict.standings.get(place));
        let least = standings.min_by_key(|standing| (standing.remaining, Reverse(standing.reset)))?;
        Some(RateStateResponse {
            limit: rate.count,
            window: rate.per.as_secs(),
            remaining: least.remaining,
            reset: whole_seconds(least.reset),
        })
    });
    Ok(Json(KeyStateResponse {
        rates: rates.collect(),
        allowed: ban.is_none() && verdicts.iter().all(Verdict::passes),
        retry_after: ban.as_ref().map_or_else(
            || {
                let longest = verdicts.iter().filter_map(|verdict| verdict.retry_after).max();
                longest.map_or(0, |wait| whole_seconds(wait).max(1))
            },
            |ban| ban.left,
        ),
        ban,
        shadow: query.shadow,
        limit: query.limit.to_string(),
        key: query.selectors,
    }))
}

// The paths of limits.

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(key_state, reset)).routes(routes!(hit))
}
