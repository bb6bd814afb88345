//! What the admin listener answers, described for programs.

use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;

pub(super) async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}

/// Written by hand; a test holds it to the routes.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");
