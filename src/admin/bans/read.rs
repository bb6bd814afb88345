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

pub(in crate::admin) async fn list(State(state): State<Arc<AdminState>>) -> Json<Vec<BanResponse>> {
    Json(state.store.bans().list().iter().map(BanResponse::of).collect())
}

pub(in crate::admin) async fn show(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<BanResponse>, Problem> {
    let ban = state.store.bans().find(ban_id(id)?).ok_or_else(no_such_ban)?;
    Ok(Json(BanResponse::of(&ban)))
}
