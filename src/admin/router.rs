//! The paths and methods of the admin listener.

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::MethodRouter;
use axum::routing::get;
use axum::routing::post;

use super::AdminState;
use super::auth;
use super::bans;
use super::events;
use super::health;
use super::history;
use super::limits;
use super::metrics;
use super::openapi;
use super::problem;

pub(super) fn router(state: Arc<AdminState>) -> Router {
    let routed = routes().into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    routed
        .method_not_allowed_fallback(problem::method_not_allowed)
        .route_layer(middleware::from_fn_with_state(Arc::clone(&state), auth::guard))
        .fallback(problem::not_found)
        .with_state(state)
}

/// Every route. `openapi.json` describes the same ones, as a test checks.
pub(super) fn routes() -> [(&'static str, MethodRouter<Arc<AdminState>>); 12] {
    [
        ("/healthz", get(health::healthz)),
        ("/readyz", get(health::readyz)),
        ("/metrics", get(metrics::metrics)),
        ("/openapi.json", get(openapi::document)),
        ("/api/v1/bans", get(bans::list).post(bans::create).delete(bans::remove_matching)),
        ("/api/v1/bans/{id}", get(bans::show).delete(bans::remove)),
        ("/api/v1/bans/export", get(bans::export)),
        ("/api/v1/events", get(events::stream)),
        ("/api/v1/history", get(history::history)),
        ("/api/v1/limits", get(limits::list)),
        ("/api/v1/limits/{name}/state", get(limits::key_state).delete(limits::reset)),
        ("/api/v1/limits/{name}/hit", post(limits::hit)),
    ]
}
