//! The paths of bans.

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::create;
use super::export;
use super::read;
use super::remove;
use super::remove_matching;
use crate::admin::AdminState;

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new()
        .routes(routes!(read::list, create::create, remove_matching::remove_matching))
        .routes(routes!(read::show, remove::remove))
        .routes(routes!(export::handler::export))
}
