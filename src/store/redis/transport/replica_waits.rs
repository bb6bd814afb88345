//! The callers of one connection that wait for replicas.

use std::mem;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The callers that wait. One of them asks at a time, for all that wait when it asks.
#[derive(Debug, Default)]
pub(super) struct ReplicaWaits(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    next: Vec<oneshot::Sender<bool>>,
    is_asking: bool,
}

impl ReplicaWaits {
    /// A caller waits from now on. Also returns whether nobody asks yet, so that it must see to that.
    pub(super) fn join(&self) -> (oneshot::Receiver<bool>, bool) {
        let (sender, receiver) = oneshot::channel();
        let mut waits = self.0.lock();
        waits.next.push(sender);
        (receiver, !mem::replace(&mut waits.is_asking, true))
    }

    /// The callers for whom the next question is. `None`: nobody waits, and nobody asks from now on.
    pub(super) fn take(&self) -> Option<Vec<oneshot::Sender<bool>>> {
        let mut waits = self.0.lock();
        waits.is_asking = !waits.next.is_empty();
        waits.is_asking.then(|| mem::take(&mut waits.next))
    }
}
