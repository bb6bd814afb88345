//! What is done for an upstream beside its requests: its servers' names are looked up, and they are asked whether they
//! are well.

use std::sync::Arc;

use hashbrown::HashMap;
use tokio::select;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Upstream;
use super::health;
use super::resolve;
use super::server::ServerId;

/// Attends to an upstream until `stop` is cancelled.
pub async fn run_background_tasks(upstream: Arc<Upstream>, stop: CancellationToken) {
    let mut checks = Checks::default();
    let resolving = resolve::resolve(&upstream);
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

/// One task for each server that is asked.
#[derive(Debug, Default)]
struct Checks(HashMap<ServerId, JoinHandle<()>>);

impl Checks {
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
                tokio::spawn(async move { health::watch(&settings, &server, &check).await })
            });
        }
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        self.0.values().for_each(JoinHandle::abort);
    }
}
