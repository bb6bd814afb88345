//! Shows the configuration in force.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http::header::VARY;

use super::media_type::prefers_json;
use crate::admin::AdminState;

/// The configuration in force
///
/// As it was read, with the environment's values in place and secrets masked: passwords in URLs, the paths of webhooks, and
/// tokens that a route is matched by. Keys that are left out have their defaults.
#[utoipa::path(
    get,
    path = "/api/v1/config",
    responses((
        status = 200,
        description = "YAML, or JSON where Accept prefers it.",
        content((String = "application/yaml"), (Object = "application/json")),
    ))
)]
pub(super) async fn show(State(state): State<Arc<AdminState>>, headers: HeaderMap) -> impl IntoResponse {
    let config = state.config.load();
    let (media_type, text) = if prefers_json(&headers) {
        ("application/json", config.json.clone())
    } else {
        ("application/yaml", config.yaml.clone())
    };
    ([(CONTENT_TYPE, media_type), (VARY, "accept")], text)
}
