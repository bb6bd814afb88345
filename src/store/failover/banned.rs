//! Bans that all gateways share, and what holds while Redis is away.

use std::sync::Arc;

use super::Failover;
use crate::limit::Ladder;
use crate::store::StoreError;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;
use crate::store::bans::ban::Record;

impl Failover {
    /// The ban that begins now, and whether it does: one that lasts stays what it is. Goes on though the caller leaves.
    pub(in crate::store) async fn ban_by_limit(
        &self,
        subject: BanSubject,
        ladder: &Ladder,
        reason: Arc<str>,
    ) -> (Ban, bool) {
        let (redis, bans) = (self.redis.on_same_core(), Arc::clone(self.bans()));
        let ladder = ladder.clone();
        let tripping = self.tasks().spawn(async move {
            if let Some((record, begins)) = redis.ban_by_limit(&bans, &subject, &ladder, &reason).await {
                return (record.ban, begins);
            }
            // Redis is told when it is back, if it still lasts.
            let (record, begins) = bans.ban_by_limit(subject, &ladder, &reason);
            bans.ask();
            (record.ban, begins)
        });
        tripping.await.expect("it neither panics nor is stopped before its core")
    }

    /// Tells every gateway of a ban by hand, now or when Redis is back.
    pub(in crate::store) async fn ban_in_redis(&self, record: &Record) {
        if !self.redis.ban_by_operator(self.bans(), record).await {
            self.bans().ask();
        }
    }

    /// Lifts a ban for every gateway: the one that Redis knew of.
    pub(in crate::store) async fn lift(&self, id: BanId) -> Result<Option<Ban>, StoreError> {
        // Of what it was never told, it will not be told.
        let is_ours_alone = self.bans().is_untold(id) && !self.redis.shared().status().up;
        match self.redis.lift_ban(self.bans(), id).await {
            Ok(lifted) => Ok(lifted),
            Err(_) if is_ours_alone => Ok(None),
            Err(_) => Err(StoreError::Outage),
        }
    }
}
