//! Changes of bans that wait to be sent: those that gather while a call is under way go as one call and one message.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use redis::Value;
use tokio::sync::oneshot;

use crate::store::redis::scripts::bans::{BanCall, BanCommand, name};
use crate::store::redis::state::store::RedisCore;
use crate::store::redis::topology::node::Failure;

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

// Changes bans in Redis: many at once, where many come at once.

impl RedisCore {
    /// Changes a ban, and tells every gateway. The change is made even if the caller is dropped.
    pub(super) async fn change_ban(self: &Arc<Self>, command: BanCommand) -> Result<Value, Failure> {
        let (answer, receiver) = oneshot::channel();
        if self.bans.push(WaitingChange { command, answer }) {
            let own = Arc::clone(self);
            self.tasks.spawn(async move { own.send_ban_changes().await });
        }
        receiver.await.unwrap_or(Err(Failure::Unknown))
    }

    async fn send_ban_changes(&self) {
        while let Some(batch) = self.bans.next_batch() {
            let (commands, answers): (Vec<_>, Vec<_>) =
                batch.into_iter().map(|waiting| (waiting.command, waiting.answer)).unzip();
            let answered = self.send_changes(&commands).await;
            for (place, answer) in answers.into_iter().enumerate() {
                // Whoever asked may have left.
                let _left = answer.send(match &answered {
                    Ok(values) => values.get(place).cloned().ok_or(Failure::Refused),
                    Err(failure) => Err(*failure),
                });
            }
        }
    }

    async fn send_changes(&self, changes: &[BanCommand]) -> Result<Vec<Value>, Failure> {
        let channel = self.shared.channel();
        let prefix = &self.shared.settings.key_prefix;
        let call = BanCall { prefix, channel: &channel, time: &self.shared.time };
        let slot = self.links.slot(name(prefix).as_bytes());
        match self.links.call_best_effort(slot, &call.change(changes)).await? {
            Value::Array(answers) => Ok(answers),
            _ => Err(Failure::Refused),
        }
    }
}
