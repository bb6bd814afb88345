//! What is learned of sessions, in memory or through Redis.

use std::sync::Arc;

use super::table::Sessions;
use crate::rules::decision::{SessionChange, SignIn};
use crate::store::AnyStore;

impl AnyStore {
    /// The sessions that this process knows.
    pub fn sessions(&self) -> &Arc<Sessions> {
        match self {
            Self::Memory(store) => store.sessions(),
            Self::Shared(store) => store.sessions(),
        }
    }

    /// Whether a success is the account's own: its request carried no session of another account. Then its sessions are
    /// learned.
    ///
    /// With Redis this asks all gateways in one round trip, and they all know the sessions when it returns, so that it is
    /// to be awaited before the client gets them. The work continues if the caller is dropped. During an outage what
    /// this process knows decides.
    pub async fn sign_in(&self, sign_in: SignIn) -> bool {
        match self {
            Self::Memory(store) => store.sign_in(sign_in).await,
            Self::Shared(store) => store.sign_in(sign_in).await,
        }
    }

    /// Applies what an answer has changed: in this process at once, and elsewhere by a task that the returned future
    /// waits for. A session may be renewed that only other gateways know.
    pub fn change_sessions(&self, changes: Vec<SessionChange>) -> impl Future<Output = ()> + Send + use<> {
        let task = match self {
            Self::Memory(store) => store.change_sessions(changes),
            Self::Shared(store) => store.change_sessions(changes),
        };
        async move {
            if let Some(task) = task {
                drop(task.await);
            }
        }
    }
}
