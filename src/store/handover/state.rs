//! Which process has the counts.

use std::sync::Arc;

use parking_lot::Mutex;
use parking_lot::RwLock;
use parking_lot::RwLockReadGuard;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::client::SuccessorClient;
use super::paused::SessionHandle;

/// Where the counts of a process are: here, with its successor, or on their way.
#[derive(Debug)]
pub struct Handover {
    phase: watch::Sender<Phase>,
    /// Whether the counts have moved, for what is not behind the lock of a shard.
    has_moved: RwLock<bool>,
    /// The sessions of predecessors that ask this process.
    pub(super) sessions: Mutex<Vec<SessionHandle>>,
    /// Tasks that tell the successor something and that no request waits for.
    tasks: TaskTracker,
}

/// The counts are in another process, or about to move there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CountsMoved;

#[derive(Clone, Debug)]
enum Phase {
    Here,
    /// It is not decided yet which process has the counts.
    Moving,
    AtSuccessor(Arc<SuccessorClient>),
}

impl Handover {
    /// Keeps the counts from moving while the guard is held.
    pub(in crate::store) fn here(&self) -> Result<RwLockReadGuard<'_, bool>, CountsMoved> {
        let has_moved = self.has_moved.read();
        if *has_moved { Err(CountsMoved) } else { Ok(has_moved) }
    }

    /// Waits until it is decided which process has the counts. `None`: this one.
    pub(in crate::store) async fn successor(&self) -> Option<Arc<SuccessorClient>> {
        self.decided_successor().await
    }

    /// The same for a task, which outlives the caller.
    pub(in crate::store) fn decided_successor(
        &self,
    ) -> impl Future<Output = Option<Arc<SuccessorClient>>> + Send + use<> {
        let mut phase = self.phase.subscribe();
        async move {
            let known = phase.wait_for(|phase| !matches!(phase, Phase::Moving)).await;
            match &*known.ok()? {
                Phase::AtSuccessor(client) => Some(Arc::clone(client)),
                Phase::Here | Phase::Moving => None,
            }
        }
    }

    pub(in crate::store) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// The first step when the counts move.
    pub(in crate::store) fn begin_move(&self) {
        self.phase.send_replace(Phase::Moving);
        *self.has_moved.write() = true;
    }

    /// The last step when the counts stay after all.
    pub(in crate::store) fn cancel_move(&self) {
        *self.has_moved.write() = false;
        self.phase.send_replace(Phase::Here);
    }

    /// The counts have moved for good.
    pub(in crate::store) fn complete_move(&self, client: Arc<SuccessorClient>) {
        self.phase.send_replace(Phase::AtSuccessor(client));
    }
}

impl Default for Handover {
    fn default() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Here),
            has_moved: RwLock::new(false),
            sessions: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }
}
