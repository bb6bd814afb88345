//! What runs for an upstream beside its requests: looking up the names of its servers, and health checks.

use std::sync::Arc;

use hashbrown::HashMap;
use tokio::select;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::health;
use super::resolve;
use super::server::ServerId;
use super::servers::Upstream;

/// Runs the tasks of an upstream until `stop` is cancelled.
pub async fn run_background_tasks(upstream: Arc<Upstream>, stop: CancellationToken) {
    let mut checks = HealthCheckTasks::default();
    let resolving = resolve::resolve_forever(&upstream);
    let checking = async {
        loop {
            let changed = upstream.changed.notified();
            checks.follow(&upstream);
            changed.await;
        }
    };
    select! {
        () = stop.cancelled() => {}
        () = async { tokio::join!(resolving, checking); } => {}
    }
}

/// One task for each server that is checked.
#[derive(Debug, Default)]
struct HealthCheckTasks(HashMap<ServerId, JoinHandle<()>>);

impl HealthCheckTasks {
    /// Starts tasks for new servers, and ends those of servers that are gone.
    fn follow(&mut self, upstream: &Upstream) {
        let Some(check) = &upstream.settings.health else { return };
        let servers = upstream.servers();
        self.0.retain(|id, task| {
            let stays = servers.iter().any(|server| server.id == *id);
            if !stays {
                task.abort();
            }
            stays
        });
        for server in servers.iter() {
            self.0.entry(server.id).or_insert_with(|| {
                let (server, check, settings) = (Arc::clone(server), check.clone(), upstream.settings.clone());
                tokio::spawn(async move { health::check_forever(&settings, &server, &check).await })
            });
        }
    }
}

impl Drop for HealthCheckTasks {
    fn drop(&mut self) {
        self.0.values().for_each(JoinHandle::abort);
    }
}
