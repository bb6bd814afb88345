//! Whether the process lives, and whether it should be sent requests.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::Value;
use serde_json::json;

use super::AdminState;
use super::limits::word;
use crate::limit::OnFailure;
use crate::store::AnyStore;

/// It answers, so it lives; also while it drains.
pub(super) async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Ready is who accepts connections and can decide.
pub(super) async fn readyz(State(state): State<Arc<AdminState>>) -> (StatusCode, Json<Value>) {
    let gauges = (state.gauges)();
    let on_failure = state.rules.load().on_failure;
    let mut store = json!({"kind": gauges.store, "up": gauges.store_up});
    if let AnyStore::Shared(shared) = &*state.store {
        let away = shared.shared().status().down;
        store["on_failure"] = json!(word(on_failure));
        if !away.is_empty() {
            store["away"] = away.iter().map(|away| json!({"server": away.server, "cause": away.cause})).collect();
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
