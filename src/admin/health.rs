//! Liveness and readiness of the gateway.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;

use super::AdminState;
use crate::api::{AwayServer, InOutage, LivenessResponse, LivenessWord, ReadinessResponse, ReadinessWord, Store};
use crate::rules::decision::Policy;
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
        (status = 503, description = "It is not ready: the gateway is draining, or Redis is down and limits deny meanwhile: by \
            `store.on_failure`, all of them, or one of every request.", body = ReadinessResponse),
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
    let mut store = Store {
        kind: gauges.store.to_owned(),
        up: gauges.store_up,
        on_failure: None,
        in_outage: Vec::new(),
        part: gauges.store_part,
        away: Vec::new(),
    };
    if let AnyStore::Shared(shared) = &*state.store {
        let down = shared.shared().status().down;
        let away = down.iter().map(|down| AwayServer { server: down.server.clone(), cause: down.cause.to_string() });
        store.on_failure = Some(state.rules.load().on_failure);
        store.in_outage = in_outage(&state.policy.load());
        store.away = away.collect();
    }
    store
}

fn in_outage(policy: &Policy) -> Vec<InOutage> {
    let all = OnFailure::ALL.map(|on_failure| InOutage {
        on_failure,
        limits: policy.limits_on_failure(on_failure).map(|limit| limit.name.to_string()).collect(),
    });
    all.into_iter().filter(|some| !some.limits.is_empty()).collect()
}

// Whether the gateway is ready for requests.

/// What `/readyz` answers, and the health service of gRPC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Readiness {
    Ready,
    Draining,
    /// A server of the store does not answer, and limits deny meanwhile.
    StoreAway,
}

impl AdminState {
    pub fn readiness(&self) -> Readiness {
        match () {
            () if self.is_draining() => Readiness::Draining,
            () if self.denies_in_outage() && !self.gauges().store_up => Readiness::StoreAway,
            () => Readiness::Ready,
        }
    }

    /// Whether limits that deny are the rule here. Where one route alone has such a limit, the others serve: no load balancer
    /// should take the whole site off.
    fn denies_in_outage(&self) -> bool {
        let policy = self.policy.load();
        let is_usual = self.rules.load().on_failure == OnFailure::Deny;
        let mut denying = policy.limits_on_failure(OnFailure::Deny).peekable();
        let others = [OnFailure::Local, OnFailure::Allow].map(|other| policy.limits_on_failure(other).next());
        let are_all = others.iter().all(Option::is_none);
        denying.peek().is_some() && (is_usual || are_all || denying.any(|limit| policy.is_everywhere(limit)))
    }
}
