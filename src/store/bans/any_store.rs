//! Bans that begin and end, in memory or through Redis.

use std::sync::Arc;
use std::time::Duration;

use super::ban::{Ban, BanId, BanSubject};
use super::table::{BanTableFull, Bans};
use crate::rules::limit::Ladder;
use crate::store::{AnyStore, StoreError};

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

    /// Bans for an operator, for `span` from now on: all of them, or none.
    pub async fn ban_by_operator(
        &self,
        subjects: Vec<BanSubject>,
        span: Duration,
        reason: &str,
    ) -> Result<Vec<Ban>, BanTableFull> {
        let (bans, reason) = (self.bans(), Arc::from(reason));
        if !bans.has_room_for(subjects.iter().map(BanSubject::id)) {
            return Err(BanTableFull);
        }
        let mut begun = Vec::with_capacity(subjects.len());
        match self {
            Self::Memory(store) => {
                for subject in subjects {
                    begun.push(store.ban_by_operator(subject, span, Arc::clone(&reason)).await?);
                }
            }
            Self::Shared(store) => {
                let ban = |subject| bans.ban_by_operator(subject, span, Arc::clone(&reason));
                let records = subjects.into_iter().map(ban).collect::<Result<Vec<_>, _>>()?;
                store.send_bans(&records).await;
                begun.extend(records.into_iter().map(|record| record.ban));
                if let Some(observer) = bans.observer() {
                    for ban in &begun {
                        observer.banned(ban);
                    }
                }
            }
        }
        Ok(begun)
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
