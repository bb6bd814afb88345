//! One task a process that discovers the servers, monitors each of them, follows resets, bans, sessions and signing keys,
//! and keeps the part of this gateway.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::store::redis::settings::Mode;
use crate::store::redis::state::bans;
use crate::store::redis::state::keyring;
use crate::store::redis::state::parts;
use crate::store::redis::state::resets;
use crate::store::redis::state::returned_leases;
use crate::store::redis::state::sessions;
use crate::store::redis::topology::cluster;
use crate::store::redis::topology::node::RedisNode;
use crate::store::redis::topology::node_monitor;
use crate::store::redis::topology::sentinel;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::resets::Resets;

/// Runs until `stop` is cancelled.
pub async fn watch(shared: Arc<SharedRedis>, resets: Resets, stop: CancellationToken) {
    let _stopped = stop.run_until_cancelled(forever(shared, resets)).await;
}

async fn forever(shared: Arc<SharedRedis>, resets: Resets) {
    let mut tasks = JoinSet::new();
    tasks.spawn(bans::follow(Arc::clone(&shared), Arc::clone(resets.bans())));
    let (sessions, clock) = (resets.sessions(), resets.clock());
    tasks.spawn(sessions::follow(Arc::clone(&shared), Arc::clone(sessions), clock.clone()));
    tasks.spawn(sessions::tell_uses(Arc::clone(&shared), Arc::clone(sessions), clock.clone()));
    tasks.spawn(resets::listen(Arc::clone(&shared), resets.clone()));
    tasks.spawn(keyring::follow(Arc::clone(&shared), Arc::clone(resets.bans())));
    tasks.spawn(returned_leases::follow(Arc::clone(&shared)));
    tasks.spawn(parts::follow(Arc::clone(&shared)));
    match shared.settings.mode {
        Mode::Single => {}
        Mode::Cluster => drop(tasks.spawn(cluster::follow(Arc::clone(&shared)))),
        Mode::Sentinel => {
            tasks.spawn(sentinel::follow(Arc::clone(&shared)));
            tasks.spawn(sentinel::listen(Arc::clone(&shared)));
        }
    }
    let mut monitored: Vec<Arc<RedisNode>> = Vec::new();
    loop {
        monitored.retain(|node| !node.is_retired());
        for node in &shared.topology.map().masters {
            if !monitored.iter().any(|known| Arc::ptr_eq(known, node)) {
                tasks.spawn(node_monitor::monitor(Arc::clone(&shared), Arc::clone(node), resets.clone()));
                monitored.push(Arc::clone(node));
            }
        }
        tokio::select! {
            () = shared.topology.changed.notified() => shared.notify(),
            Some(_) = tasks.join_next() => {}
        }
    }
}
