//! The `OpenAPI` description of the admin listener.

use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;

pub(super) async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}

/// Written by hand. A test compares it with the routes.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");
