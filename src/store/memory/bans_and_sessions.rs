//! Bans that begin and end in this process.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::rules::decision::{SessionChange, SignIn};
use crate::rules::limit::Ladder;
use crate::store::bans::ban::BanRecord;
use crate::store::bans::codec::SavedBan;
use crate::store::bans::{Ban, BanId, BanSubject, BanTableFull};
use crate::store::memory::store::{CountsMoved, MemoryStore, expect_here};

impl MemoryStore {
    /// Bans for a predecessor.
    pub(in crate::store) fn ban_by_limit_now(
        &self,
        requested: BanRecord,
        client: Option<IpAddr>,
        ladder: &Ladder,
    ) -> SavedBan {
        let Ban { subject, reason, .. } = requested.ban;
        SavedBan::of(&expect_here(self.try_ban_by_limit(&with_client(subject, client), ladder, &reason)))
    }

    /// Bans for an operator of a predecessor; `None`: there is no room.
    pub(in crate::store) fn ban_by_operator_now(
        &self,
        requested: BanRecord,
        client: Option<IpAddr>,
        span: Duration,
    ) -> Option<SavedBan> {
        let Ban { subject, reason, .. } = requested.ban;
        expect_here(self.try_ban_by_operator(&with_client(subject, client), span, &reason))
            .ok()
            .map(|record| SavedBan::of(&record))
    }

    /// Lifts for a predecessor.
    pub(in crate::store) fn lift_now(&self, id: BanId) -> Option<SavedBan> {
        let lifted = expect_here(self.try_lift(id));
        lifted.map(|ban| SavedBan::of(&BanRecord::new(ban, 0, Duration::ZERO)))
    }

    pub(in crate::store) fn try_ban_by_limit(
        &self,
        subject: &BanSubject,
        ladder: &Ladder,
        reason: &Arc<str>,
    ) -> Result<BanRecord, CountsMoved> {
        let _here = self.here()?;
        let (record, begins) = self.bans.ban_by_limit(subject.clone(), ladder, reason);
        if let Some(observer) = self.bans.observer().filter(|_| begins) {
            observer.banned(&record.ban);
        }
        Ok(record)
    }

    pub(in crate::store) fn try_ban_by_operator(
        &self,
        subject: &BanSubject,
        span: Duration,
        reason: &Arc<str>,
    ) -> Result<Result<BanRecord, BanTableFull>, CountsMoved> {
        let _here = self.here()?;
        let banned = self.bans.ban_by_operator(subject.clone(), span, Arc::clone(reason));
        if let (Ok(record), Some(observer)) = (&banned, self.bans.observer()) {
            observer.banned(&record.ban);
        }
        Ok(banned)
    }

    pub(in crate::store) fn try_lift(&self, id: BanId) -> Result<Option<Ban>, CountsMoved> {
        let _here = self.here()?;
        let lifted = self.bans.lift(id);
        if let Some((observer, ban)) = self.bans.observer().zip(lifted.as_ref()) {
            observer.lifted(ban);
        }
        Ok(lifted)
    }
}

fn with_client(mut subject: BanSubject, sender: Option<IpAddr>) -> BanSubject {
    if let BanSubject::Key { client, .. } = &mut subject {
        *client = sender;
    }
    subject
}

impl MemoryStore {
    /// To be called about once a second.
    pub(in crate::store) fn remove_expired_sessions(&self) {
        self.sessions.remove_expired(self.clock.now());
    }

    /// Signs in for a predecessor.
    pub(in crate::store) fn sign_in_now(&self, sign_in: &SignIn) -> bool {
        expect_here(self.try_sign_in(sign_in))
    }

    /// Changes sessions for a predecessor.
    pub(in crate::store) fn change_sessions_now(&self, changes: &[SessionChange]) {
        expect_here(self.try_change_sessions(changes));
    }

    pub(in crate::store) fn try_sign_in(&self, sign_in: &SignIn) -> Result<bool, CountsMoved> {
        let _here = self.here()?;
        Ok(self.sessions.sign_in(sign_in, self.clock.now()))
    }

    pub(in crate::store) fn try_change_sessions(&self, changes: &[SessionChange]) -> Result<(), CountsMoved> {
        let _here = self.here()?;
        self.apply(changes);
        Ok(())
    }

    pub(in crate::store) fn apply(&self, changes: &[SessionChange]) {
        let now = self.clock.now();
        for change in changes {
            self.sessions.apply(*change, now);
        }
    }
}
