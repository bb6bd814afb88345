//! Sessions that all gateways share, and what is learned of them during an outage.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::store::Failover;
use crate::decision::SessionChange;
use crate::decision::SignIn;
use crate::store::Sessions;
use crate::store::sessions::known::KnownSession;

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
                SessionChange::Renew { .. } => None,
            }));
            sessions.request_sync();
        }))
    }

    /// What this process knows of the session that is renewed.
    fn renewed(&self, change: SessionChange) -> Option<KnownSession> {
        match change {
            SessionChange::Renew { old, .. } => self.sessions().find(old, self.clock.now()),
            SessionChange::Forget(_) => None,
        }
    }
}

fn mark_sent(sessions: &Sessions, changes: &[(SessionChange, Option<KnownSession>)]) {
    for (change, known) in changes {
        if let (SessionChange::Renew { new, .. }, Some(known)) = (change, known) {
            sessions.mark_sent(&KnownSession { session: *new, ..*known });
        }
    }
}
