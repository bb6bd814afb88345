//! Stops accept loops, either for good or because another process takes the sockets over.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Stops the accept loops that hold an [`AcceptStop`] of it.
#[derive(Debug, Default)]
pub struct AcceptStopper {
    requested: CancellationToken,
    is_handover: Arc<AtomicBool>,
    accepting: TaskTracker,
}

/// The stop signal of one accept loop, held until the loop ends.
#[derive(Clone, Debug)]
pub struct AcceptStop {
    requested: CancellationToken,
    is_handover: Arc<AtomicBool>,
    _accepting: TaskTrackerToken,
}

impl AcceptStopper {
    pub fn stop(&self) -> AcceptStop {
        AcceptStop {
            requested: self.requested.clone(),
            is_handover: Arc::clone(&self.is_handover),
            _accepting: self.accepting.token(),
        }
    }

    /// Stops for good. Connections in an accept queue are accepted first, because closing the socket would reset them.
    pub fn close(&self) {
        self.requested.cancel();
    }

    /// Stops at once. Connections in an accept queue are left to another process that has the same sockets.
    pub fn hand_over(&self) {
        self.is_handover.store(true, Ordering::Release);
        self.requested.cancel();
    }

    /// Returns when every loop has ended and its socket is closed.
    pub async fn ended(&self) {
        self.accepting.close();
        self.accepting.wait().await;
    }
}

impl AcceptStop {
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }

    pub(super) fn is_handover(&self) -> bool {
        self.is_handover.load(Ordering::Acquire)
    }
}
