//! Bans that begin and end, whichever store there is.

use std::sync::Arc;
use std::time::Duration;

use super::ban::Ban;
use super::ban::BanId;
use super::ban::Subject;
use super::table::Bans;
use super::table::Full;
use crate::limit::Ladder;
use crate::store::AnyStore;
use crate::store::StoreError;

impl AnyStore {
    /// The bans that this process knows of.
    pub fn bans(&self) -> &Arc<Bans> {
        match self {
            Self::Memory(store) => store.bans(),
            Self::Shared(store) => store.bans(),
        }
    }

    /// A limit that bans was reached: the ban that lasts from now on, or already did. In Redis this goes on though the
    /// caller leaves; while it is away the ban holds here.
    pub async fn trip(&self, subject: Subject, ladder: &Ladder, reason: &str) -> Ban {
        let (bans, reason) = (self.bans(), Arc::from(reason));
        if let Some(lasting) = bans.find(subject.id()) {
            return lasting;
        }
        match self {
            Self::Memory(store) => store.trip(subject, ladder, &reason).await,
            Self::Shared(store) => {
                let (ban, begins) = store.trip(subject, ladder, reason).await;
                if let Some(listener) = bans.listener().filter(|_| begins) {
                    listener.banned(&ban);
                }
                ban
            }
        }
    }

    /// Bans by hand, for so long from now.
    pub async fn ban(&self, subject: Subject, span: Duration, reason: &str) -> Result<Ban, Full> {
        let reason = Arc::from(reason);
        match self {
            Self::Memory(store) => store.ban(subject, span, reason).await,
            Self::Shared(store) => {
                let record = self.bans().ban(subject, span, reason)?;
                store.tell_ban(&record).await;
                if let Some(listener) = self.bans().listener() {
                    listener.banned(&record.ban);
                }
                Ok(record.ban)
            }
        }
    }

    /// Lifts a ban: the one it was, or `None` if there was none. Fails where Redis, which holds it, does not answer.
    pub async fn lift(&self, id: BanId) -> Result<Option<Ban>, StoreError> {
        let now = self.bans().now();
        // Asked before: what Redis tells of it is heard here too.
        let known = self.bans().find(id);
        let shared = match self {
            Self::Memory(store) => return store.lift(id).await,
            Self::Shared(store) => store.lift(id).await?,
        };
        self.bans().lift(id);
        let lifted = known.or(shared.filter(|ban| ban.until > now));
        if let Some((listener, ban)) = self.bans().listener().zip(lifted.as_ref()) {
            listener.lifted(ban);
        }
        Ok(lifted)
    }
}
