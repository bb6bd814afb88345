//! Shows bans.

use std::sync::Arc;

use axum::Json;
use axum::extract::Path;
use axum::extract::State;
use axum::extract::rejection::PathRejection;

use super::ban_response::BanResponse;
use super::parse::ban_id;
use super::parse::no_such_ban;
use crate::admin::AdminState;
use crate::admin::problem::Problem;

/// All bans in force
///
/// As this gateway knows them. Changes by another gateway are known within a second.
#[utoipa::path(
    get,
    path = "/api/v1/bans",
    responses((
        status = 200,
        description = "Sorted by end. The ban that ends first is the first.",
        body = Vec<BanResponse>,
    ))
)]
pub(super) async fn list(State(state): State<Arc<AdminState>>) -> Json<Vec<BanResponse>> {
    Json(state.store.bans().list().iter().map(|ban| BanResponse::of(ban, &state.store)).collect())
}

/// One ban
#[utoipa::path(
    get,
    path = "/api/v1/bans/{id}",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "As in the list.", body = BanResponse),
        (status = 404, description = "There is no ban of that id."),
    )
)]
pub(super) async fn show(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<BanResponse>, Problem> {
    let ban = state.store.bans().find(ban_id(id)?).ok_or_else(no_such_ban)?;
    Ok(Json(BanResponse::of(&ban, &state.store)))
}
