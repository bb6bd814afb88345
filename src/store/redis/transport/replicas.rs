//! Waits until replicas have what was written on a connection.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::Value;

use super::breaker::DownCause;
use super::connection::RedisConnection;
use super::fault::ServerFault;

/// What must have happened to a charge before it counts as made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store::redis) struct ReplicaWait {
    /// So many replicas have it.
    pub(in crate::store::redis) replicas: NonZeroU32,
    /// At most so long after it was made.
    pub(in crate::store::redis) patience: Duration,
}

impl RedisConnection {
    /// Whether enough replicas have all that was answered on this connection before this call.
    pub(in crate::store::redis) async fn is_replicated(&self, wait: ReplicaWait) -> bool {
        let (receiver, begins) = self.replica_waits().join();
        if begins {
            // In a task: whoever leaves must not leave the others waiting.
            tokio::spawn(ask_for_all(self.clone(), wait));
        }
        receiver.await.unwrap_or(false)
    }

    /// Fails unless enough replicas have all that was answered on this connection before this call.
    pub(in crate::store::redis) async fn wait_for_replicas(&self, wait: ReplicaWait) -> Result<(), ServerFault> {
        let ReplicaWait { replicas, patience } = wait;
        let mut command = redis::cmd("WAIT");
        command.arg(replicas.get()).arg(patience.as_millis().max(1).to_string());
        match self.ask(&command).await? {
            Value::Int(have) if have >= i64::from(replicas.get()) => Ok(()),
            Value::Int(have) => {
                let detail = format!("{have} of {replicas} replicas have what it wrote");
                Err(ServerFault { cause: DownCause::NoReplicas, detail })
            }
            _ => Err(ServerFault::nonsense()),
        }
    }
}

/// `WAIT` is about all that was written on its connection before, and holds up what comes after: so one is for all that wait
/// when it is sent, and there is one at a time.
async fn ask_for_all(connection: RedisConnection, wait: ReplicaWait) {
    while let Some(waiting) = connection.replica_waits().take() {
        let is_replicated = connection.wait_for_replicas(wait).await.is_ok();
        for caller in waiting {
            // It may have left.
            let _ = caller.send(is_replicated);
        }
    }
}
