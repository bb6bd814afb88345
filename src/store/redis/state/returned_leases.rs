//! Gives back leases whose units were not spent.

use std::sync::Arc;
use std::time::Duration;

use tokio::time;

use super::core::RedisCore;
use super::join_all::join_all;
use crate::store::leases::ReturnedLease;
use crate::store::redis::scripts;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::shared::SharedRedis;

/// How often leases are looked at while there are any.
const ROUND: Duration = Duration::from_millis(100);

/// Gives back what is left of leases that have ended, for ever: one task for the process.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let links = Links::unobserved(&shared);
    loop {
        shared.leases.begun().await;
        time::sleep(ROUND).await;
        give_back(&shared, &links, &shared.leases.take_ended()).await;
    }
}

impl RedisCore {
    /// Gives back all leases of this process, because it ends.
    pub(in crate::store::redis) async fn return_leases(&self) {
        give_back(&self.shared, &self.links, &self.shared.leases.take_all()).await;
    }
}

/// A call without an answer is not repeated: the units then count until the lease would have ended, and a window longer.
async fn give_back(shared: &SharedRedis, links: &Links, returned: &[ReturnedLease]) {
    let (names, channel) = (shared.settings.key_names(), shared.channel());
    join_all(returned.iter().map(|lease| {
        let invocation = scripts::return_lease(names, &channel, &shared.time, lease);
        let slot = links.slot(names.name(lease.key).as_bytes());
        async move { drop(links.call_best_effort(slot, &invocation).await) }
    }))
    .await;
}
