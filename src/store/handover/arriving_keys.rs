//! Keys that arrive from a predecessor, and what waits for the last of them.

use std::io;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::paused::PausedSession;
use super::reservations::PredecessorReservations;
use crate::key::KeyHash;
use crate::store::MemoryStore;

/// The session of a predecessor of the predecessor. What it has reserved is among the keys that arrive.
#[derive(Debug)]
pub(super) struct AwaitingSession {
    pub(super) stream: UnixStream,
    pub(super) received: Vec<u8>,
    pub(super) unsent: Vec<u8>,
    pub(super) slots: Vec<(KeyHash, u32)>,
    pub(super) guards: Vec<(KeyHash, u32)>,
}

/// What waits for the last key.
#[derive(Debug)]
pub(super) struct ArrivingKeys {
    pub(super) sessions: Vec<AwaitingSession>,
    pub(super) all_arrived: oneshot::Sender<()>,
}

/// The keys of a predecessor on their way to this process.
#[derive(Debug)]
pub struct Arrival {
    store: Arc<MemoryStore>,
    all_arrived: oneshot::Receiver<()>,
}

impl AwaitingSession {
    /// Takes its reservations out of those of the predecessor, which had them before.
    pub(super) fn split_from(self, reservations: &mut PredecessorReservations) -> PausedSession {
        let Self { stream, received, unsent, slots, guards } = self;
        let reservations = reservations.split_off(&slots, &guards);
        PausedSession { stream, received, unsent, reservations, bans_mark: 0, draining: None }
    }
}

impl Arrival {
    pub(super) fn new(store: &Arc<MemoryStore>) -> (Self, oneshot::Sender<()>) {
        let (sender, all_arrived) = oneshot::channel();
        (Self { store: Arc::clone(store), all_arrived }, sender)
    }

    /// Returns when all keys are here. Fails if the predecessor is gone before, or sends nothing for `patience`; those
    /// that have arrived stay here then.
    pub async fn complete(mut self, patience: Duration) -> io::Result<()> {
        let mut keys = self.store.len();
        let arrived = loop {
            match timeout(patience, &mut self.all_arrived).await {
                Ok(arrived) => break arrived.map_err(|_| ErrorKind::UnexpectedEof.into()),
                Err(_) if self.store.len() == keys => break Err(ErrorKind::TimedOut.into()),
                Err(_) => keys = self.store.len(),
            }
        };
        self.store.await_keys(&[]);
        arrived
    }
}
