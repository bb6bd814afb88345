//! Changes of bans that wait to be sent: those that gather while a call is under way go as one call and one message.

use std::mem;

use parking_lot::Mutex;
use redis::Value;
use tokio::sync::oneshot;

use crate::store::redis::scripts::bans::BanCommand;
use crate::store::redis::topology::failure::Failure;

/// The most changes of one call: so many take Redis a few milliseconds.
pub(super) const MOST_CHANGES: usize = 100;

/// The changes of one core, in the order in which they are made.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct BanQueue(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<WaitingChange>,
    /// A task sends them.
    is_sending: bool,
}

#[derive(Debug)]
pub(super) struct WaitingChange {
    pub(super) command: BanCommand,
    pub(super) answer: oneshot::Sender<Result<Value, Failure>>,
}

impl BanQueue {
    /// Returns whether the caller is to see that they are sent.
    pub(super) fn push(&self, change: WaitingChange) -> bool {
        let mut queue = self.0.lock();
        queue.waiting.push(change);
        !mem::replace(&mut queue.is_sending, true)
    }

    /// `None`: nothing waits, and whoever comes next begins to send again.
    pub(super) fn next_batch(&self) -> Option<Vec<WaitingChange>> {
        let mut queue = self.0.lock();
        let count = queue.waiting.len().min(MOST_CHANGES);
        queue.is_sending = count > 0;
        (count > 0).then(|| queue.waiting.drain(..count).collect())
    }
}
