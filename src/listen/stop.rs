//! How accepting ends: for good, or because another process goes on with the same sockets.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Ends the accept loops that were given an [`AcceptStop`] of it.
#[derive(Debug, Default)]
pub struct AcceptStopper {
    told: CancellationToken,
    leaves: Arc<AtomicBool>,
    accepting: TaskTracker,
}

/// What an accept loop listens to, and holds as long as it runs.
#[derive(Clone, Debug)]
pub struct AcceptStop {
    told: CancellationToken,
    leaves: Arc<AtomicBool>,
    _accepting: TaskTrackerToken,
}

impl AcceptStopper {
    pub fn stop(&self) -> AcceptStop {
        AcceptStop { told: self.told.clone(), leaves: Arc::clone(&self.leaves), _accepting: self.accepting.token() }
    }

    /// Whoever waits in an accept queue is taken in, since closing the socket would reset them; nobody else.
    pub fn close(&self) {
        self.told.cancel();
    }

    /// Whoever waits in an accept queue is left to another process that has the same sockets.
    pub fn leave(&self) {
        self.leaves.store(true, Ordering::Release);
        self.told.cancel();
    }

    /// Returns when every loop has ended and its socket is closed.
    pub async fn ended(&self) {
        self.accepting.close();
        self.accepting.wait().await;
    }
}

impl AcceptStop {
    pub(super) async fn told(&self) {
        self.told.cancelled().await;
    }

    pub(super) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }
}
