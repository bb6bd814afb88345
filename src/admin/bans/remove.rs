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

/// Lift a ban
///
/// Its ladder begins again, and its limit is reset for that key. Every gateway on the same store knows within a second.
#[utoipa::path(
    delete,
    path = "/api/v1/bans/{id}",
    params(("id" = String, Path)),
    responses(
        (status = 204, description = "The ban is lifted."),
        (status = 404, description = "There is no ban of that id."),
        (status = 503, description = "Redis does not answer: the ban may still be in force."),
    )
)]
pub(super) async fn remove(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let lifted = lift(&state, &[ban_id(id)?]).await?;
    if lifted.is_empty() { Err(no_such_ban()) } else { Ok(StatusCode::NO_CONTENT) }
}
