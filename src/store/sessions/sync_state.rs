//! What this process knows of the sessions in Redis.

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::message::SessionMessage;
use super::version::SessionVersion;
use crate::key::KeyHash;

/// What this process knows of the sessions in Redis.
#[derive(Debug, Default)]
pub(super) struct SessionSync {
    pub(super) state: Mutex<SyncState>,
    /// Wakes the task that asks Redis for changes.
    pub(super) request: Notify,
    /// Sessions whose use is to be told to Redis.
    pub(super) used: Mutex<Vec<KeyHash>>,
    /// Sessions that were forgotten here while Redis did not answer.
    pub(super) forgotten: Mutex<Vec<KeyHash>>,
}

#[derive(Debug, Default)]
pub(super) struct SyncState {
    /// Every change up to this one is known.
    pub(super) version: Option<SessionVersion>,
    /// Messages that arrived while sessions are being loaded: a page that was read before such a message is stale.
    pub(super) during_load: Option<Vec<SessionMessage>>,
    /// Whether this process receives changes as they are made.
    pub(super) is_subscribed: bool,
}

impl SyncState {
    /// Moves the known version on to that of a message. `false`: a change before it is missing.
    pub(super) fn advance(&mut self, message: &SessionMessage) -> bool {
        let version = message.version;
        let is_next = match self.version {
            None => version.changes == u64::from(message.is_change),
            Some(known) if known.follows(version) => {
                if known.changes == version.changes && version.stamp > known.stamp {
                    self.version = Some(version);
                }
                return true;
            }
            Some(known) => {
                known.begun == version.begun
                    && known.changes.wrapping_add(u64::from(message.is_change)) == version.changes
            }
        };
        if is_next {
            self.version = Some(version);
        }
        is_next
    }
}
