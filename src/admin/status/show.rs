//! Shows the status.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::gateways::KnownGateways;
use super::response::StatusResponse;
use crate::admin::AdminState;

/// How the gateway is
///
/// And which other gateways count in the same Redis: each is asked, and named as missing where it does not answer within
/// 300 ms.
#[utoipa::path(
    get,
    path = "/api/v1/status",
    responses((status = 200, description = "The status now.", body = StatusResponse))
)]
pub(super) async fn show(State(state): State<Arc<AdminState>>) -> Json<StatusResponse> {
    let known = KnownGateways::ask(&state).await;
    Json(StatusResponse::of(&state, known))
}
