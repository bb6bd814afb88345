//! Sessions that all gateways share, and what is learned of them during an outage.

use tokio::task::JoinHandle;

use super::store::Failover;
use crate::decision::SessionChange;
use crate::decision::SignIn;

impl Failover {
    /// Whether the success is the account's own.
    #[expect(clippy::unused_async, reason = "Redis is asked here next")]
    pub(in crate::store) async fn sign_in(&self, sign_in: SignIn) -> bool {
        self.local.sign_in_now(&sign_in)
    }

    pub(in crate::store) fn change_sessions(&self, changes: Vec<SessionChange>) -> Option<JoinHandle<()>> {
        self.local.change_sessions_now(&changes);
        None
    }
}
