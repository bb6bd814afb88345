//! Bans that all gateways share, and bans during an outage.

use std::sync::Arc;

use super::store::Failover;
use crate::limit::Ladder;
use crate::store::StoreError;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;
use crate::store::bans::ban::BanRecord;

impl Failover {
    /// Returns the ban, and whether it begins now: a ban that lasts already stays as it is. The work continues if the
    /// caller is dropped.
    pub(in crate::store) async fn ban_by_limit(
        &self,
        subject: BanSubject,
        ladder: &Ladder,
        reason: Arc<str>,
    ) -> (Ban, bool) {
        let (redis, bans) = (self.redis.on_same_core(), Arc::clone(self.bans()));
        let ladder = ladder.clone();
        let banning = self.tasks().spawn(async move {
            if let Some((record, begins)) = redis.ban_by_limit(&bans, &subject, &ladder, &reason).await {
                return (record.ban, begins);
            }
            // Sent to Redis after the outage, if it still lasts then.
            let (record, begins) = bans.ban_by_limit(subject, &ladder, &reason);
            bans.request_sync();
            (record.ban, begins)
        });
        banning.await.expect("the task neither panics nor is stopped before its core")
    }

    /// Sends a ban of an operator to all gateways, now or after the outage.
    pub(in crate::store) async fn send_ban(&self, record: &BanRecord) {
        if !self.redis.ban_by_operator(self.bans(), record).await {
            self.bans().request_sync();
        }
    }

    /// Lifts a ban here and for all gateways, and returns the ban that Redis had.
    pub(in crate::store) async fn lift(&self, id: BanId) -> Result<Option<Ban>, StoreError> {
        let _paused = self.bans().pause_resends().await;
        // A ban that Redis never had is not sent to it any more.
        let is_only_here = self.bans().is_unsent(id) && !self.redis.shared().status().up;
        match self.redis.lift_ban(self.bans(), id).await {
            Ok(lifted) => Ok(lifted),
            Err(_) if is_only_here => {
                self.bans().lift(id);
                Ok(None)
            }
            Err(_) => Err(StoreError::Outage),
        }
    }
}
