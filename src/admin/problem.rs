//! Errors of the admin listener as problem documents.

use axum::response::IntoResponse;
use http::Method;
use http::StatusCode;
use http::Uri;
use http::header::CONTENT_TYPE;
use serde_json::json;

pub(super) async fn not_found(uri: Uri) -> impl IntoResponse {
    problem(StatusCode::NOT_FOUND, &format!("there is nothing at {}", uri.path()))
}

pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> impl IntoResponse {
    problem(StatusCode::METHOD_NOT_ALLOWED, &format!("{} does not answer {method}", uri.path()))
}

fn problem(status: StatusCode, detail: &str) -> impl IntoResponse + use<> {
    let title = status.canonical_reason().unwrap_or_default();
    let document = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail});
    (status, [(CONTENT_TYPE, "application/problem+json")], document.to_string())
}
