//! Liveness and readiness of the gateway.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::Value;
use serde_json::json;

use super::AdminState;
use super::limits::on_failure_name;
use crate::limit::OnFailure;
use crate::store::AnyStore;

/// Liveness: `ok` whenever the process can answer, also while it drains.
pub(super) async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Readiness: the gateway accepts connections and can decide.
pub(super) async fn readyz(State(state): State<Arc<AdminState>>) -> (StatusCode, Json<Value>) {
    let gauges = (state.gauges)();
    let on_failure = state.rules.load().on_failure;
    let mut store = json!({"kind": gauges.store, "up": gauges.store_up});
    if let AnyStore::Shared(shared) = &*state.store {
        let down = shared.shared().status().down;
        store["on_failure"] = json!(on_failure_name(on_failure));
        if !down.is_empty() {
            store["away"] = down.iter().map(|down| json!({"server": down.server, "cause": down.cause})).collect();
        }
    }
    let (status, word) = if state.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if !gauges.store_up && on_failure == OnFailure::Deny {
        (StatusCode::SERVICE_UNAVAILABLE, "store away")
    } else {
        (StatusCode::OK, "ready")
    };
    (status, Json(json!({"status": word, "store": store})))
}
