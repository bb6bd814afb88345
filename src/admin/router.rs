//! The paths and methods of the admin listener.

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::middleware;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::AdminState;
use super::advice;
use super::auth;
use super::bans;
use super::config;
use super::events;
use super::health;
use super::history;
use super::limits;
use super::metrics;
use super::openapi;
use super::openapi::Document;
use super::page;
use super::problem;
use super::requests;
use super::session;
use super::status;
use super::taken_input;
use super::taken_input::TakenInputs;
use super::top;

pub(super) fn router(state: Arc<AdminState>) -> Router {
    let (routed, mut description) = described_routes().split_for_parts();
    let taken = TakenInputs::of(&mut description);
    routed
        .method_not_allowed_fallback(problem::method_not_allowed)
        .route_layer(Extension(Document::complete(description)))
        .route_layer(middleware::from_fn_with_state(taken, taken_input::refuse_others))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&state), auth::guard))
        .fallback(problem::not_found)
        .with_state(state)
}

/// Every route with its description: a handler that is not described is not served.
fn described_routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
        .routes(routes!(openapi::document))
        .merge(page::routes())
        .merge(session::routes())
        .merge(bans::routes())
        .merge(config::routes())
        .routes(routes!(events::stream))
        .routes(routes!(events::recent))
        .routes(routes!(history::history))
        .merge(limits::routes())
        .merge(status::routes())
        .routes(routes!(requests::list))
        .routes(routes!(requests::show))
        .routes(routes!(top::top))
        .routes(routes!(advice::advice))
}
