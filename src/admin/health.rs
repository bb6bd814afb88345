//! Liveness and readiness of the gateway.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::AdminState;
use super::Readiness;
use super::limits::OnFailureWord;
use crate::store::AnyStore;

/// Whether the process can answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Liveness)]
pub(super) struct LivenessResponse {
    #[schema(inline)]
    status: LivenessWord,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum LivenessWord {
    Ok,
}

/// Whether the gateway is ready for requests, and what its store does.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Readiness)]
pub(super) struct ReadinessResponse {
    #[schema(inline)]
    status: ReadinessWord,
    store: StoreResponse,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ReadinessWord {
    Ready,
    Draining,
    #[serde(rename = "store away")]
    StoreAway,
}

/// The store that counts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Store)]
pub(super) struct StoreResponse {
    /// `memory` or `redis`.
    kind: &'static str,
    /// Whether every server of the store answers.
    up: bool,
    /// Only for redis: what to do while Redis is down, for limits that do not say.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<OnFailureWord>,
    /// Only for redis: which part of every limit this gateway grants while Redis is down, from 0 to 1.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<f64>,
    /// Only for redis: the servers that do not answer. Left out where all answer.
    #[schema(inline)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    away: Vec<AwayResponse>,
}

/// A server of the store that does not answer.
#[derive(Debug, Serialize, ToSchema)]
struct AwayResponse {
    server: String,
    cause: String,
}

/// Whether the process lives
///
/// Also while it drains.
#[utoipa::path(
    get,
    path = "/healthz",
    responses((status = 200, description = "The process answers.", body = LivenessResponse))
)]
pub(super) async fn healthz() -> Json<LivenessResponse> {
    Json(LivenessResponse { status: LivenessWord::Ok })
}

/// Whether the gateway is ready for requests
#[utoipa::path(
    get,
    path = "/readyz",
    responses(
        (status = 200, description = "It is ready.", body = ReadinessResponse),
        (status = 503, description = "It is not ready: the gateway is draining, or Redis is down and `store.on_failure` is \
            `deny`.", body = ReadinessResponse),
    )
)]
pub(super) async fn readyz(State(state): State<Arc<AdminState>>) -> (StatusCode, Json<ReadinessResponse>) {
    let store = StoreResponse::of(&state);
    let (status, word) = match state.readiness() {
        Readiness::Ready => (StatusCode::OK, ReadinessWord::Ready),
        Readiness::Draining => (StatusCode::SERVICE_UNAVAILABLE, ReadinessWord::Draining),
        Readiness::StoreAway => (StatusCode::SERVICE_UNAVAILABLE, ReadinessWord::StoreAway),
    };
    (status, Json(ReadinessResponse { status: word, store }))
}

impl StoreResponse {
    pub(super) fn of(state: &AdminState) -> Self {
        let gauges = state.gauges();
        let (on_failure, away) = match &*state.store {
            AnyStore::Memory(_) => (None, Vec::new()),
            AnyStore::Shared(shared) => {
                let down = shared.shared().status().down;
                let away =
                    down.iter().map(|down| AwayResponse { server: down.server.clone(), cause: down.cause.to_string() });
                (Some(state.rules.load().on_failure.into()), away.collect())
            }
        };
        Self { kind: gauges.store, up: gauges.store_up, on_failure, part: gauges.store_part, away }
    }
}
