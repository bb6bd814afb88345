//! Shows the status.

use std::sync::Arc;

use axum::Json;
use axum::extract::RawQuery;
use axum::extract::State;

use super::gateways::KnownGateways;
use super::response::StatusResponse;
use crate::admin::AdminState;
use crate::admin::problem::Problem;
use crate::admin::query::Query;

/// How the gateway is
///
/// And which other gateways count in the same Redis: each tells the others about itself every two seconds.
#[utoipa::path(
    get,
    path = "/api/v1/status",
    responses(
        (status = 200, description = "The status now.", body = StatusResponse),
        (status = 400, description = "There are no parameters."),
    )
)]
pub(super) async fn show(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<Json<StatusResponse>, Problem> {
    Query::read(query.as_deref(), &[])?;
    let known = KnownGateways::ask(&state).await;
    Ok(Json(StatusResponse::of(&state, known)))
}
