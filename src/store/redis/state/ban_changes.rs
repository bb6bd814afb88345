//! Changes bans in Redis: many at once, where many come at once.

use std::sync::Arc;

use redis::Value;
use tokio::sync::oneshot;

use super::ban_queue::WaitingChange;
use super::core::RedisCore;
use crate::store::redis::scripts::bans::BanCall;
use crate::store::redis::scripts::bans::BanCommand;
use crate::store::redis::scripts::bans::name;
use crate::store::redis::topology::failure::Failure;

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
