//! Bans that begin and end in this process, or in the process that has taken over.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::local_copy::expect_here;
use super::store::MemoryStore;
use crate::clock::Timestamp;
use crate::limit::Ladder;
use crate::store::StoreError;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;
use crate::store::bans::BanTableFull;
use crate::store::bans::ban::BanRecord;
use crate::store::bans::saved::SavedBan;
use crate::store::handover::CountsMoved;
use crate::store::handover::message::HandoverReply;
use crate::store::handover::message::HandoverRequest;

impl MemoryStore {
    /// Returns the ban that begins now, or the one that lasts already. If the process that has taken over is gone, the
    /// ban holds in this process.
    pub(in crate::store) async fn ban_by_limit(&self, subject: BanSubject, ladder: &Ladder, reason: &Arc<str>) -> Ban {
        loop {
            if let Ok(record) = self.try_ban_by_limit(&subject, ladder, reason) {
                return record.ban;
            }
            let Some(successor) = self.handover.successor().await else { continue };
            let (saved, client) = (saved(&subject, reason), client(&subject));
            let answer = successor.ask(HandoverRequest::BanByLimit { saved, client, ladder: ladder.clone() }).await;
            return match self.take_over_ban(answer, &subject) {
                Some(record) => record.ban,
                None => self.bans.ban_by_limit(subject, ladder, reason).0.ban,
            };
        }
    }

    pub(in crate::store) async fn ban_by_operator(
        &self,
        subject: BanSubject,
        span: Duration,
        reason: Arc<str>,
    ) -> Result<Ban, BanTableFull> {
        loop {
            if let Ok(banned) = self.try_ban_by_operator(&subject, span, &reason) {
                return banned.map(|record| record.ban);
            }
            let Some(successor) = self.handover.successor().await else { continue };
            let (saved, client) = (saved(&subject, &reason), client(&subject));
            let answer = successor.ask(HandoverRequest::BanByOperator { saved, client, span }).await;
            return self.take_over_ban(answer, &subject).map(|record| record.ban).ok_or(BanTableFull);
        }
    }

    /// Lifts a ban and returns it.
    pub(in crate::store) async fn lift(&self, id: BanId) -> Result<Option<Ban>, StoreError> {
        loop {
            if let Ok(lifted) = self.try_lift(id) {
                return Ok(lifted);
            }
            let Some(successor) = self.handover.successor().await else { continue };
            let HandoverReply::Ban(lifted) = successor.ask(HandoverRequest::Lift(id)).await? else { return Ok(None) };
            let known = self.bans.lift(id);
            return Ok(known.or(lifted.and_then(|lifted| lifted.read()).map(|record| record.ban)));
        }
    }

    /// [`ban_by_limit`](Self::ban_by_limit) for a predecessor.
    pub(in crate::store) fn ban_by_limit_now(
        &self,
        requested: BanRecord,
        client: Option<IpAddr>,
        ladder: &Ladder,
    ) -> SavedBan {
        let Ban { subject, reason, .. } = requested.ban;
        SavedBan::of(&expect_here(self.try_ban_by_limit(&with_client(subject, client), ladder, &reason)))
    }

    /// [`ban_by_operator`](Self::ban_by_operator) for a predecessor; `None`: there is no room.
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

    /// [`lift`](Self::lift) for a predecessor.
    pub(in crate::store) fn lift_now(&self, id: BanId) -> Option<SavedBan> {
        let lifted = expect_here(self.try_lift(id));
        lifted.map(|ban| SavedBan::of(&BanRecord::new(ban, 0, Duration::ZERO)))
    }

    fn try_ban_by_limit(
        &self,
        subject: &BanSubject,
        ladder: &Ladder,
        reason: &Arc<str>,
    ) -> Result<BanRecord, CountsMoved> {
        let _here = self.handover.here()?;
        let (record, begins) = self.bans.ban_by_limit(subject.clone(), ladder, reason);
        if let Some(observer) = self.bans.observer().filter(|_| begins) {
            observer.banned(&record.ban);
        }
        Ok(record)
    }

    fn try_ban_by_operator(
        &self,
        subject: &BanSubject,
        span: Duration,
        reason: &Arc<str>,
    ) -> Result<Result<BanRecord, BanTableFull>, CountsMoved> {
        let _here = self.handover.here()?;
        let banned = self.bans.ban_by_operator(subject.clone(), span, Arc::clone(reason));
        if let (Ok(record), Some(observer)) = (&banned, self.bans.observer()) {
            observer.banned(&record.ban);
        }
        Ok(banned)
    }

    fn try_lift(&self, id: BanId) -> Result<Option<Ban>, CountsMoved> {
        let _here = self.handover.here()?;
        let lifted = self.bans.lift(id);
        if let Some((observer, ban)) = self.bans.observer().zip(lifted.as_ref()) {
            observer.lifted(ban);
        }
        Ok(lifted)
    }

    /// Takes over a ban that the other process began, with the subject of this process, which knows more about the key.
    fn take_over_ban(&self, answer: Result<HandoverReply, StoreError>, subject: &BanSubject) -> Option<BanRecord> {
        let Ok(HandoverReply::Ban(Some(saved))) = answer else { return None };
        let mut record = saved.read()?;
        record.ban.subject = subject.clone();
        self.bans.insert(record.clone());
        Some(record)
    }
}

/// A subject and a reason in the form of a saved ban.
fn saved(subject: &BanSubject, reason: &Arc<str>) -> SavedBan {
    let (since, until) = (Timestamp::EPOCH, Timestamp::EPOCH);
    let (subject, reason) = (subject.clone(), Arc::clone(reason));
    let ban = Ban { id: subject.id(), subject, since, until, reason, by_operator: false };
    SavedBan::of(&BanRecord::new(ban, 0, Duration::ZERO))
}

/// The client whose request began the ban, which a saved ban does not have.
fn client(subject: &BanSubject) -> Option<IpAddr> {
    match subject {
        BanSubject::Key { client, .. } => *client,
        BanSubject::Address(_) => None,
    }
}

fn with_client(mut subject: BanSubject, sender: Option<IpAddr>) -> BanSubject {
    if let BanSubject::Key { client, .. } = &mut subject {
        *client = sender;
    }
    subject
}
