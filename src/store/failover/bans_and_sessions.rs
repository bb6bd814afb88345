//! Bans that all gateways share, and bans during an outage.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::rules::decision::{SessionChange, SignIn};
use crate::rules::limit::Ladder;
use crate::store::bans::ban::BanRecord;
use crate::store::bans::{Ban, BanId, BanSubject};
use crate::store::failover::store::Failover;
use crate::store::redis::join_all;
use crate::store::sessions::codec::KnownSession;
use crate::store::{Sessions, StoreError};

/// So many bans of one call wait for Redis together: ten full calls of Redis.
const SENT_TOGETHER: usize = 1000;

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

    /// Sends bans of an operator to all gateways, now or after the outage.
    pub(in crate::store) async fn send_bans(&self, records: &[BanRecord]) {
        let mut are_sent = true;
        // Redis gets those that wait together in one call.
        for some in records.chunks(SENT_TOGETHER) {
            let sent = join_all(some.iter().map(|record| self.redis.ban_by_operator(self.bans(), record))).await;
            are_sent &= sent.into_iter().all(|is_sent| is_sent);
        }
        if !are_sent {
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

impl Failover {
    /// Whether the success is the account's own. The work continues if the caller is dropped.
    pub(in crate::store) async fn sign_in(&self, sign_in: SignIn) -> bool {
        let sessions = Arc::clone(self.sessions());
        let now = self.clock.now();
        if sessions.is_of_another(&sign_in, now) {
            return false;
        }
        if sign_in.carried.is_empty() && sign_in.learned.is_empty() {
            return true;
        }
        let redis = self.redis.on_same_core();
        let signing_in = self.tasks().spawn(async move {
            if let Some(is_own) = redis.sign_in(&sessions, &sign_in, now).await {
                return is_own;
            }
            // Sent to Redis after the outage.
            let is_own = sessions.sign_in(&sign_in, now);
            sessions.request_sync();
            is_own
        });
        signing_in.await.expect("the task neither panics nor is stopped before its core")
    }

    /// Applies these changes here. The task tells them to all gateways, now or after the outage.
    pub(in crate::store) fn change_sessions(&self, changes: Vec<SessionChange>) -> Option<JoinHandle<()>> {
        if changes.is_empty() {
            return None;
        }
        let (redis, sessions, clock) = (self.redis.on_same_core(), Arc::clone(self.sessions()), self.clock.clone());
        let known: Vec<_> = changes.into_iter().map(|change| (change, self.renewed(change))).collect();
        for (change, _) in &known {
            sessions.apply(*change, clock.now());
        }
        Some(self.tasks().spawn(async move {
            if redis.change_sessions(&sessions, &known).await.is_ok() {
                return mark_sent(&sessions, &known);
            }
            sessions.note_forgotten(known.iter().filter_map(|(change, _)| match change {
                SessionChange::Forget(session) => Some(*session),
                SessionChange::Renew { .. } | SessionChange::Learn { .. } => None,
            }));
            sessions.request_sync();
        }))
    }

    /// What this process knows of the session that is renewed or learned.
    fn renewed(&self, change: SessionChange) -> Option<KnownSession> {
        let now = self.clock.now();
        match change {
            SessionChange::Renew { old, .. } => self.sessions().find(old, now),
            SessionChange::Learn { session, account, keep } => {
                let known = self.sessions().find(session, now);
                Some(known.unwrap_or(KnownSession { session, account, keep, used: now }))
            }
            SessionChange::Forget(_) => None,
        }
    }
}

// Sessions that all gateways share, and what is learned of them during an outage.

fn mark_sent(sessions: &Sessions, changes: &[(SessionChange, Option<KnownSession>)]) {
    for (change, known) in changes {
        if let (SessionChange::Renew { new, .. } | SessionChange::Learn { session: new, .. }, Some(known)) =
            (change, known)
        {
            sessions.mark_sent(&KnownSession { session: *new, ..*known });
        }
    }
}
