//! A session with a predecessor while no process replies to it.

use std::os::unix::net;

use tokio::sync::oneshot;

use super::reservations::PredecessorReservations;

/// A session with a predecessor to which no process replies: this one not yet, or not any more.
#[derive(Debug)]
pub(super) struct PausedSession {
    pub(super) stream: net::UnixStream,
    /// Bytes that were received, but are not a whole frame yet.
    pub(super) received: Vec<u8>,
    pub(super) unsent: Vec<u8>,
    pub(super) reservations: PredecessorReservations,
    /// Bans up to this mark were sent to it.
    pub(super) bans_mark: u64,
    /// Is sent when the predecessor accepts no more connections.
    pub(super) draining: Option<oneshot::Sender<()>>,
}

/// Pauses a session that runs in a task.
#[derive(Debug)]
pub(super) struct SessionHandle(oneshot::Sender<oneshot::Sender<PausedSession>>);

/// The other end of a [`SessionHandle`]: what the session waits for.
pub(super) type PauseRequest = oneshot::Receiver<oneshot::Sender<PausedSession>>;

impl SessionHandle {
    pub(super) fn new() -> (Self, PauseRequest) {
        let (handle, request) = oneshot::channel();
        (Self(handle), request)
    }

    /// Pauses the session; `None`: it has ended. Blocks.
    pub(super) fn pause(self) -> Option<PausedSession> {
        let (sender, receiver) = oneshot::channel();
        self.0.send(sender).ok()?;
        receiver.blocking_recv().ok()
    }
}
