//! Lists the limits in force.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::limit_response::LimitResponse;
use crate::admin::AdminState;
use crate::limit::LimitId;

pub(in crate::admin) async fn list(State(state): State<Arc<AdminState>>) -> Json<serde_json::Value> {
    let policy = state.policy.load();
    let limits: Vec<_> =
        (0..).map(LimitId).zip(&policy.limits).map(|(id, limit)| LimitResponse::of(&policy, id, limit)).collect();
    Json(serde_json::to_value(limits).expect("names and numbers are JSON"))
}
