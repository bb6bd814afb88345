//! What is learned of sessions in this process, or in the process that has taken over.

use tokio::task::JoinHandle;

use super::local_copy::expect_here;
use super::store::MemoryStore;
use crate::decision::SessionChange;
use crate::decision::SignIn;
use crate::store::handover::CountsMoved;
use crate::store::handover::message::HandoverReply;
use crate::store::handover::message::HandoverRequest;

impl MemoryStore {
    /// Whether the success is the account's own. If the process that has taken over is gone, what this process knows
    /// decides.
    pub(in crate::store) async fn sign_in(&self, sign_in: SignIn) -> bool {
        loop {
            if let Ok(is_own) = self.try_sign_in(&sign_in) {
                return is_own;
            }
            let Some(successor) = self.handover.successor().await else { continue };
            if successor.has_sessions() {
                let asked = HandoverRequest::SignIn(sign_in.clone());
                if let Ok(HandoverReply::SignedIn(false)) = Box::pin(successor.ask(asked)).await {
                    return false;
                }
            }
            // For the requests that this process still serves.
            return self.sessions.sign_in(&sign_in, self.clock.now());
        }
    }

    /// Applies these changes. The task tells them to the process that has taken over.
    pub(in crate::store) fn change_sessions(&self, changes: Vec<SessionChange>) -> Option<JoinHandle<()>> {
        if self.try_change_sessions(&changes).is_ok() {
            return None;
        }
        self.apply(&changes);
        let successor = self.handover.decided_successor();
        Some(self.handover.tasks().spawn(async move {
            if let Some(successor) = successor.await.filter(|successor| successor.has_sessions()) {
                drop(successor.ask(HandoverRequest::ChangeSessions(changes)).await);
            }
        }))
    }

    /// To be called about once a second.
    pub(in crate::store) fn remove_expired_sessions(&self) {
        self.sessions.remove_expired(self.clock.now());
    }

    /// [`sign_in`](Self::sign_in) for a predecessor.
    pub(in crate::store) fn sign_in_now(&self, sign_in: &SignIn) -> bool {
        expect_here(self.try_sign_in(sign_in))
    }

    /// [`change_sessions`](Self::change_sessions) for a predecessor.
    pub(in crate::store) fn change_sessions_now(&self, changes: &[SessionChange]) {
        expect_here(self.try_change_sessions(changes));
    }

    fn try_sign_in(&self, sign_in: &SignIn) -> Result<bool, CountsMoved> {
        let _here = self.handover.here()?;
        Ok(self.sessions.sign_in(sign_in, self.clock.now()))
    }

    fn try_change_sessions(&self, changes: &[SessionChange]) -> Result<(), CountsMoved> {
        let _here = self.handover.here()?;
        self.apply(changes);
        Ok(())
    }

    fn apply(&self, changes: &[SessionChange]) {
        let now = self.clock.now();
        for change in changes {
            self.sessions.apply(*change, now);
        }
    }
}
