//! The metrics, in the format that the scraper asks for.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use http::HeaderMap;
use http::header::ACCEPT;
use http::header::CONTENT_TYPE;

use super::AdminState;
use crate::record::metrics::Exposition;

/// Metrics for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "In the OpenMetrics format where Accept asks for it.", content(
        (String = "text/plain"),
        (String = "application/openmetrics-text"),
    )))
)]
pub(super) async fn metrics(State(state): State<Arc<AdminState>>, headers: HeaderMap) -> impl IntoResponse {
    let accepts_open_metrics =
        headers.get(ACCEPT).is_some_and(|accept| memchr::memmem::find(accept.as_bytes(), OPEN_METRICS).is_some());
    let (exposition, content_type) = if accepts_open_metrics {
        (Exposition::OpenMetrics, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    } else {
        (Exposition::Prometheus, "text/plain; version=0.0.4; charset=utf-8")
    };
    ([(CONTENT_TYPE, content_type)], state.metrics.expose(&state.gauges(), exposition))
}

const OPEN_METRICS: &[u8] = b"application/openmetrics-text";
