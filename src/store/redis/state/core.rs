//! What one core needs to call Redis.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::ban_queue::BanQueue;
use super::in_flight::InFlightSlots;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::shared::SharedRedis;

/// What one core needs to call Redis.
#[derive(Debug)]
pub(in crate::store::redis) struct RedisCore {
    pub(in crate::store::redis) shared: Arc<SharedRedis>,
    pub(in crate::store::redis) links: Links,
    pub(in crate::store::redis) in_flight: InFlightSlots,
    pub(in crate::store::redis) bans: BanQueue,
    /// Tasks that no request waits for.
    pub(in crate::store::redis) tasks: TaskTracker,
}
