//! Reads, charges and resets one key of a limit.

use std::sync::Arc;

use axum::Json;
use axum::extract::Path;
use axum::extract::RawQuery;
use axum::extract::State;
use axum::extract::rejection::PathRejection;
use http::StatusCode;
use tracing::info;

use super::key_query::CostParameter;
use super::key_query::key_query;
use super::key_state_response::KeyStateResponse;
use crate::admin::AdminState;
use crate::admin::bans::ban_of;
use crate::admin::key_parts::KeyParts;
use crate::admin::problem::Problem;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::store::Store;
use crate::store::StoreError;

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
    KeyStateResponse::of(query, ban, &verdicts)
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
        return KeyStateResponse::of(query, ban, &verdicts);
    }
    let verdicts = state.store.decide(&query.batch()).await.map_err(unavailable)?;
    if query.is_in_flight() && verdicts.iter().all(Verdict::passes) {
        let slots: Vec<_> = query.keys.iter().map(|queried| Settlement::Release(queried.key)).collect();
        state.store.settle(&slots).await.map_err(unavailable)?;
    }
    KeyStateResponse::of(query, ban, &verdicts)
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

const REDIS_DOWN: &str = "Redis does not answer, and this limit has `on_failure: deny`";

const TOO_BUSY: &str = "this gateway is too busy to ask Redis";

const SUCCESSOR_GONE: &str = "another process took over from this one, and that process is gone";

const NOT_RESET: &str = "Redis does not answer: the limit may not be reset";
