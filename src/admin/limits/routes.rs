//! The paths of limits.

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::key_state;
use super::list;
use crate::admin::AdminState;

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(key_state::key_state, key_state::reset))
        .routes(routes!(key_state::hit))
}
