//! What one core needs to speak to Redis.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::in_flight::InFlight;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::shared::SharedRedis;

/// What one core needs to speak to Redis.
#[derive(Debug)]
pub(in crate::store::redis) struct Core {
    pub(in crate::store::redis) shared: Arc<SharedRedis>,
    pub(in crate::store::redis) links: Links,
    pub(in crate::store::redis) in_flight: InFlight,
    /// What goes on though nobody waits for it.
    pub(in crate::store::redis) tasks: TaskTracker,
}
