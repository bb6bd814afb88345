//! Bans that begin and end here, or in the process that has taken over.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::MemoryStore;
use super::behind::stays;
use crate::clock::Timestamp;
use crate::limit::Ladder;
use crate::store::StoreError;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;
use crate::store::bans::BanTableFull;
use crate::store::bans::ban::Record;
use crate::store::bans::shared::Written;
use crate::store::handover::Moved;
use crate::store::handover::message::Answer;
use crate::store::handover::message::Question;

impl MemoryStore {
    /// The ban that holds from now on, or already did. Where the process that decides that is gone, it holds here.
    pub(in crate::store) async fn ban_by_limit(&self, subject: BanSubject, ladder: &Ladder, reason: &Arc<str>) -> Ban {
        loop {
            if let Ok(record) = self.try_ban_by_limit(&subject, ladder, reason) {
                return record.ban;
            }
            let Some(relay) = self.handover.successor().await else { continue };
            let (asked, client) = (asked(&subject, reason), client(&subject));
            let answer = relay.ask(Question::Trip { subject: asked, client, ladder: ladder.clone() }).await;
            return match self.learn(answer, &subject) {
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
            let Some(relay) = self.handover.successor().await else { continue };
            let (asked, client) = (asked(&subject, &reason), client(&subject));
            let answer = relay.ask(Question::Ban { subject: asked, client, span }).await;
            return self.learn(answer, &subject).map(|record| record.ban).ok_or(BanTableFull);
        }
    }

    /// The ban there was.
    pub(in crate::store) async fn lift(&self, id: BanId) -> Result<Option<Ban>, StoreError> {
        loop {
            if let Ok(lifted) = self.try_lift(id) {
                return Ok(lifted);
            }
            let Some(relay) = self.handover.successor().await else { continue };
            let Answer::Ban(lifted) = relay.ask(Question::Lift(id)).await? else { return Ok(None) };
            let known = self.bans.lift(id);
            return Ok(known.or(lifted.and_then(|lifted| lifted.read()).map(|record| record.ban)));
        }
    }

    /// For a predecessor.
    pub(in crate::store) fn ban_by_limit_now(&self, asked: Record, client: Option<IpAddr>, ladder: &Ladder) -> Written {
        let Ban { subject, reason, .. } = asked.ban;
        Written::of(&stays(self.try_ban_by_limit(&of_client(subject, client), ladder, &reason)))
    }

    /// For a predecessor; `None`: there is no room.
    pub(in crate::store) fn ban_by_operator_now(
        &self,
        asked: Record,
        client: Option<IpAddr>,
        span: Duration,
    ) -> Option<Written> {
        let Ban { subject, reason, .. } = asked.ban;
        stays(self.try_ban_by_operator(&of_client(subject, client), span, &reason))
            .ok()
            .map(|record| Written::of(&record))
    }

    /// For a predecessor.
    pub(in crate::store) fn lift_now(&self, id: BanId) -> Option<Written> {
        let lifted = stays(self.try_lift(id));
        lifted.map(|ban| Written::of(&Record { ban, step: 0, length: Duration::ZERO }))
    }

    fn try_ban_by_limit(&self, subject: &BanSubject, ladder: &Ladder, reason: &Arc<str>) -> Result<Record, Moved> {
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
    ) -> Result<Result<Record, BanTableFull>, Moved> {
        let _here = self.handover.here()?;
        let banned = self.bans.ban_by_operator(subject.clone(), span, Arc::clone(reason));
        if let (Ok(record), Some(observer)) = (&banned, self.bans.observer()) {
            observer.banned(&record.ban);
        }
        Ok(banned)
    }

    fn try_lift(&self, id: BanId) -> Result<Option<Ban>, Moved> {
        let _here = self.handover.here()?;
        let lifted = self.bans.lift(id);
        if let Some((observer, ban)) = self.bans.observer().zip(lifted.as_ref()) {
            observer.lifted(ban);
        }
        Ok(lifted)
    }

    /// Knows a ban from now on that another process began. Of its key more is known here.
    fn learn(&self, answer: Result<Answer, StoreError>, subject: &BanSubject) -> Option<Record> {
        let Ok(Answer::Ban(Some(told))) = answer else { return None };
        let mut record = told.read()?;
        record.ban.subject = subject.clone();
        self.bans.keep(record.clone());
        Some(record)
    }
}

/// A subject and a reason, as they are written of a ban.
fn asked(subject: &BanSubject, reason: &Arc<str>) -> Written {
    let (since, until) = (Timestamp::EPOCH, Timestamp::EPOCH);
    let (subject, reason) = (subject.clone(), Arc::clone(reason));
    let ban = Ban { id: subject.id(), subject, since, until, reason, by_operator: false };
    Written::of(&Record { ban, step: 0, length: Duration::ZERO })
}

/// Who asked when it began, which is not written of a ban.
fn client(subject: &BanSubject) -> Option<IpAddr> {
    match subject {
        BanSubject::Key { client, .. } => *client,
        BanSubject::Address(_) => None,
    }
}

fn of_client(mut subject: BanSubject, asked: Option<IpAddr>) -> BanSubject {
    if let BanSubject::Key { client, .. } = &mut subject {
        *client = asked;
    }
    subject
}
