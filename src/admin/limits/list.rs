//! Lists the limits in force.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::limit_response::LimitResponse;
use crate::admin::AdminState;
use crate::limit::LimitId;

/// Every limit in force
#[utoipa::path(
    get,
    path = "/api/v1/limits",
    responses((
        status = 200,
        description = "In the order of the configuration, global limits first.",
        body = Vec<LimitResponse<'_>>,
    ))
)]
pub(super) async fn list(State(state): State<Arc<AdminState>>) -> Json<serde_json::Value> {
    let policy = state.policy.load();
    let limits: Vec<_> =
        (0..).map(LimitId).zip(&policy.limits).map(|(id, limit)| LimitResponse::of(&policy, id, limit)).collect();
    Json(serde_json::to_value(limits).expect("names and numbers are JSON"))
}
