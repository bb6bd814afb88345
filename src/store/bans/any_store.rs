//! Bans that begin and end, in memory or through Redis.

use std::sync::Arc;
use std::time::Duration;

use super::ban::Ban;
use super::ban::BanId;
use super::ban::BanSubject;
use super::table::BanTableFull;
use super::table::Bans;
use crate::limit::Ladder;
use crate::store::AnyStore;
use crate::store::StoreError;

impl AnyStore {
    /// The bans that this process knows.
    pub fn bans(&self) -> &Arc<Bans> {
        match self {
            Self::Memory(store) => store.bans(),
            Self::Shared(store) => store.bans(),
        }
    }

    /// Whether only this process knows a ban, because Redis does not have it yet.
    pub fn is_only_here(&self, id: BanId) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Shared(_) => self.bans().is_unsent(id),
        }
    }

    /// Bans because a limit was reached. Returns the ban that begins now, or the one that lasts already. With Redis the
    /// work continues if the caller is dropped; during an outage the ban holds in this process.
    pub async fn ban_by_limit(&self, subject: BanSubject, ladder: &Ladder, reason: &str) -> Ban {
        let (bans, reason) = (self.bans(), Arc::from(reason));
        if let Some(lasting) = bans.find(subject.id()) {
            return lasting;
        }
        match self {
            Self::Memory(store) => store.ban_by_limit(subject, ladder, &reason).await,
            Self::Shared(store) => {
                let (ban, begins) = store.ban_by_limit(subject, ladder, reason).await;
                if let Some(observer) = bans.observer().filter(|_| begins) {
                    observer.banned(&ban);
                }
                ban
            }
        }
    }

    /// Bans for an operator, for `span` from now on.
    pub async fn ban_by_operator(
        &self,
        subject: BanSubject,
        span: Duration,
        reason: &str,
    ) -> Result<Ban, BanTableFull> {
        let reason = Arc::from(reason);
        match self {
            Self::Memory(store) => store.ban_by_operator(subject, span, reason).await,
            Self::Shared(store) => {
                let record = self.bans().ban_by_operator(subject, span, reason)?;
                store.send_ban(&record).await;
                if let Some(observer) = self.bans().observer() {
                    observer.banned(&record.ban);
                }
                Ok(record.ban)
            }
        }
    }

    /// Lifts a ban and returns it, or `None` if there was none. Fails while Redis, which has it, does not answer.
    pub async fn lift(&self, id: BanId) -> Result<Option<Ban>, StoreError> {
        let now = self.bans().now();
        // Looked up first: the message from Redis about this very change removes it here too.
        let known = self.bans().find(id);
        let shared = match self {
            Self::Memory(store) => return store.lift(id).await,
            Self::Shared(store) => store.lift(id).await?,
        };
        let lifted = known.or(shared.filter(|ban| ban.until > now));
        if let Some((observer, ban)) = self.bans().observer().zip(lifted.as_ref()) {
            observer.lifted(ban);
        }
        Ok(lifted)
    }
}
