//! The counts of a gateway in memory move to the process that takes over, and there is one count at any moment.
//!
//! The process of before, the *predecessor*, freezes its counts, sends them to its *successor*, and asks that one from
//! then on: what it still serves counts there. Until the successor is told that the counts are its own, it decides
//! nothing, and whatever is asked of the frozen ones waits; should the successor not come to serve, they thaw.
//!
//! - [`message`]: what the two say to each other.
//! - [`frame`]: how it is written.
//! - [`client`]: the side of the predecessor, which asks.
//! - [`session`]: the side of the successor, which answers, and remembers what the predecessor still holds.
//! - [`transfer`]: how the counts themselves move.
//!
//! A successor may be succeeded while its own predecessor still drains: that one's socket and what it holds go on with
//! the counts, so that it asks the newest process at once.

pub mod client;
pub mod transfer;

mod frame;
mod session;

pub(in crate::store) mod message;

use std::sync::Arc;

use parking_lot::Mutex;
use parking_lot::RwLock;
use parking_lot::RwLockReadGuard;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use self::client::SuccessorClient;
use self::session::Parking;

/// Where the counts of a process are: here, with its successor, or on their way.
#[derive(Debug)]
pub struct Handover {
    phase: watch::Sender<Phase>,
    /// Whether they have moved, for what is not behind the lock of a shard.
    has_moved: RwLock<bool>,
    /// The predecessors that ask this process.
    sessions: Mutex<Vec<Parking>>,
    /// What the successor is told though nobody waits for it.
    tasks: TaskTracker,
}

/// What was asked for is counted by another process, or about to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Moved;

#[derive(Clone, Debug)]
enum Phase {
    Here,
    /// Nobody knows yet which process counts from here on.
    Moving,
    There(Arc<SuccessorClient>),
}

impl Handover {
    /// For as long as this is held nothing moves.
    pub(super) fn here(&self) -> Result<RwLockReadGuard<'_, bool>, Moved> {
        let has_moved = self.has_moved.read();
        if *has_moved { Err(Moved) } else { Ok(has_moved) }
    }

    /// Who counts instead, once that is known; `None`: this process, after all.
    pub(super) async fn successor(&self) -> Option<Arc<SuccessorClient>> {
        let mut phase = self.phase.subscribe();
        let known = phase.wait_for(|phase| !matches!(phase, Phase::Moving)).await;
        match &*known.ok()? {
            Phase::There(client) => Some(Arc::clone(client)),
            Phase::Here | Phase::Moving => None,
        }
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// The first thing to be done when counts move.
    pub(super) fn begin(&self) {
        self.phase.send_replace(Phase::Moving);
        *self.has_moved.write() = true;
    }

    /// The last thing to be done when they stay.
    pub(super) fn end_here(&self) {
        *self.has_moved.write() = false;
        self.phase.send_replace(Phase::Here);
    }

    /// They have moved, for good.
    pub(super) fn end_there(&self, client: Arc<SuccessorClient>) {
        self.phase.send_replace(Phase::There(client));
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

#[cfg(test)]
mod tests;
