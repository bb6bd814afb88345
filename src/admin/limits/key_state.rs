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
use crate::admin::problem::Problem;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::store::Store;
use crate::store::StoreError;

/// The state of a key. Charges nothing.
pub(in crate::admin) async fn key_state(
    State(state): State<Arc<AdminState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<KeyStateResponse>, Problem> {
    let query = key_query(&state, name, query.as_deref(), CostParameter::NotAllowed)?;
    let verdicts = state.store.look(&query.batch()).await.map_err(unavailable)?;
    let ban = ban_of(&state, &query);
    KeyStateResponse::of(query, ban, &verdicts)
}

/// Decides and charges as a request would. While the key is banned, only limits that count attempts are charged. A
/// concurrency slot is released at once, because this request ends here.
pub(in crate::admin) async fn hit(
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
        state.store.settle(&[Settlement::Release(query.key)]).await.map_err(unavailable)?;
    }
    KeyStateResponse::of(query, ban, &verdicts)
}

/// Resets the limit for one key.
pub(in crate::admin) async fn reset(
    State(state): State<Arc<AdminState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Problem> {
    let query = key_query(&state, name, query.as_deref(), CostParameter::NotAllowed)?;
    let reset = state.store.reset(&[query.key]).await;
    reset.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, NOT_RESET))?;
    info!(limit = &*query.limit, "an operator reset the limit {} for one key", query.limit);
    Ok(StatusCode::NO_CONTENT)
}

fn unavailable(error: StoreError) -> Problem {
    let reason = match error {
        StoreError::Outage => REDIS_DOWN,
        StoreError::SuccessorGone => SUCCESSOR_GONE,
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}

const REDIS_DOWN: &str = "Redis does not answer, and this limit has `on_failure: deny`";

const SUCCESSOR_GONE: &str = "another process took over from this one, and that process is gone";

const NOT_RESET: &str = "Redis does not answer: the limit may not be reset";
