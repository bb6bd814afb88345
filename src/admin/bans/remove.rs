//! Lifts one ban by its id.

use std::sync::Arc;

use axum::extract::Path;
use axum::extract::State;
use axum::extract::rejection::PathRejection;
use http::StatusCode;

use super::lift::lift;
use super::parse::ban_id;
use super::parse::no_such_ban;
use crate::admin::AdminState;
use crate::admin::problem::Problem;

/// Lifts a ban and resets its key.
pub(in crate::admin) async fn remove(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let lifted = lift(&state, &[ban_id(id)?]).await?;
    if lifted.is_empty() { Err(no_such_ban()) } else { Ok(StatusCode::NO_CONTENT) }
}
