//! Liveness and readiness of the gateway.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;

use super::AdminState;
use crate::api::{AwayServer, LivenessResponse, LivenessWord, ReadinessResponse, ReadinessWord, Store};
use crate::rules::limit::OnFailure;
use crate::store::AnyStore;

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
    let store = store(&state);
    let (status, word) = match state.readiness() {
        Readiness::Ready => (StatusCode::OK, ReadinessWord::Ready),
        Readiness::Draining => (StatusCode::SERVICE_UNAVAILABLE, ReadinessWord::Draining),
        Readiness::StoreAway => (StatusCode::SERVICE_UNAVAILABLE, ReadinessWord::StoreAway),
    };
    (status, Json(ReadinessResponse { status: word, store }))
}

/// The store that counts, as it is now.
pub(super) fn store(state: &AdminState) -> Store {
    let gauges = state.gauges();
    let (on_failure, away) = match &*state.store {
        AnyStore::Memory(_) => (None, Vec::new()),
        AnyStore::Shared(shared) => {
            let down = shared.shared().status().down;
            let away =
                down.iter().map(|down| AwayServer { server: down.server.clone(), cause: down.cause.to_string() });
            (Some(state.rules.load().on_failure), away.collect())
        }
    };
    Store { kind: gauges.store.to_owned(), up: gauges.store_up, on_failure, part: gauges.store_part, away }
}

// Whether the gateway is ready for requests.

/// What `/readyz` answers, and the health service of gRPC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Readiness {
    Ready,
    Draining,
    /// A server of the store does not answer, and limits that do not say otherwise deny meanwhile.
    StoreAway,
}

impl AdminState {
    pub fn readiness(&self) -> Readiness {
        match () {
            () if self.is_draining() => Readiness::Draining,
            () if self.rules.load().on_failure == OnFailure::Deny && !self.gauges().store_up => Readiness::StoreAway,
            () => Readiness::Ready,
        }
    }
}
