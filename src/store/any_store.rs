//! The stores as one type.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::failover::Failover;
use super::handover::MovableStore;
use crate::rules::decision::{Batch, SessionChange, Settlement, SignIn, Verdict, Verdicts};
use crate::rules::key::{Hashers, KeyHash, KeyHasher};
use crate::rules::limit::{Ladder, OnFailure};
use crate::store::bans::{Ban, BanId, BanSubject, BanTableFull};
use crate::store::{Bans, LiveKeyRing, Sessions, memory, redis};

/// How long a process that ends waits for a Redis that does not answer.
const FINISH_TIMEOUT: Duration = Duration::from_millis(500);

/// The stores as one type, so that no request needs a box. Each core has its own, and all of one process count
/// together.
#[derive(Debug)]
pub enum AnyStore {
    Memory(Arc<MovableStore>),
    /// Redis, and this process during an outage.
    Shared(Failover),
}

impl AnyStore {
    /// The same counts for another core, with connections of its own.
    #[must_use]
    pub fn on_another_core(&self) -> Self {
        match self {
            Self::Memory(store) => Self::Memory(Arc::clone(store)),
            Self::Shared(store) => Self::Shared(store.on_another_core()),
        }
    }

    /// Hashes keys for this store: with a secret of this process, or one that all gateways on a Redis share.
    pub fn hasher(&self) -> KeyHasher {
        match self {
            Self::Memory(store) => store.hasher(),
            Self::Shared(store) => store.hasher(),
        }
    }

    /// The keys that the gateway signs with: the same for all gateways that share the store.
    pub fn key_ring(&self) -> &Arc<LiveKeyRing> {
        match self {
            Self::Memory(store) => store.key_ring(),
            Self::Shared(store) => store.key_ring(),
        }
    }

    /// The hashers for counting, and for keys shown in logs and masks. All gateways on the store show a key alike, and
    /// the hash cannot be computed without their secret.
    pub fn hashers(&self) -> Hashers {
        Hashers { counted: self.hasher(), shown: KeyHasher::new(self.key_ring().load().display_secret()) }
    }

    /// Whether requests of this process that passed under this key wait for their outcome, and may give back their
    /// charge.
    pub async fn is_unsettled(&self, key: KeyHash) -> bool {
        match self {
            Self::Memory(store) => store.is_unsettled(key).await,
            Self::Shared(store) => store.is_unsettled(key),
        }
    }

    /// Tasks of this core that no request waits for, above all those that give slots back.
    pub fn tasks(&self) -> &TaskTracker {
        match self {
            Self::Memory(store) => store.tasks(),
            Self::Shared(store) => store.tasks(),
        }
    }

    /// Decides a batch that needs no call to another process, and adds the verdicts in its order. `false`: it was not
    /// decided, and is for [`decide`](Store::decide).
    pub fn decide_here(&self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> bool {
        match self {
            Self::Memory(store) => store.decide_here(batch, verdicts),
            Self::Shared(_) => batch.charges.is_empty(),
        }
    }

    /// Settles in this order what needs no call to another process, and returns how many were settled. The rest is for
    /// [`settle`](Store::settle).
    pub fn settle_here(&self, settlements: &[Settlement<'_>]) -> usize {
        match self {
            Self::Memory(store) => store.settle_here(settlements),
            Self::Shared(_) => 0,
        }
    }

    /// Waits until the tasks of this core have ended, but no longer than [`FINISH_TIMEOUT`]. Slots that are not given
    /// back by then end with their leases.
    pub async fn finish(&self) {
        let tasks = self.tasks();
        if let Self::Shared(store) = self {
            store.leave();
        }
        tasks.close();
        drop(timeout(FINISH_TIMEOUT, tasks.wait()).await);
    }
}

// Calls to Redis are boxed, so that the future of a request that memory decides stays small.
impl Store for AnyStore {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self {
            Self::Memory(store) => store.decide(batch).await,
            Self::Shared(store) => Box::pin(store.decide(batch)).await,
        }
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self {
            Self::Memory(store) => store.look(batch).await,
            Self::Shared(store) => Box::pin(store.look(batch)).await,
        }
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        match self {
            Self::Memory(store) => store.settle(settlements).await,
            Self::Shared(store) => Box::pin(store.settle(settlements)).await,
        }
    }

    async fn reset(&self, keys: &[KeyHash]) -> Result<(), StoreError> {
        match self {
            Self::Memory(store) => store.reset(keys).await,
            Self::Shared(store) => Box::pin(store.reset(keys)).await,
        }
    }
}

// Bans that begin and end, in memory or through Redis.

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

// What is learned of sessions, in memory or through Redis.

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
    /// With Redis this asks all gateways in one round trip, and they all have been told the sessions when it returns, so that
    /// it is to be awaited before the client gets them: a busy gateway may read of them a moment later. The work continues
    /// if the caller is dropped. During an outage what this process knows decides.
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

// The `store` section.

/// The `store` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreSettings {
    pub memory: memory::MemorySettings,
    /// `None`: counts are kept only in memory.
    pub redis: Option<redis::RedisSettings>,
    /// What a limit does during an outage of Redis if it does not say so itself.
    pub on_failure: OnFailure,
    /// How many gateways share the Redis: during an outage each grants its part of every limit.
    pub nodes: Nodes,
}

/// How many gateways share the Redis.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Nodes {
    /// The gateways that are there: each holds a [part](super::parts) that Redis has granted.
    #[default]
    Auto,
    Fixed(NonZeroU32),
}

/// In the words of the configuration.
impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(count) => count.fmt(f),
        }
    }
}

// What every store does.

/// Keeps counts.
pub trait Store: Send + Sync {
    /// Decides a whole batch in one step: it is charged to every limit, or to none.
    ///
    /// Returns the verdicts in the order of the batch.
    fn decide(&self, batch: &Batch<'_>) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Returns the verdicts that `decide` would return now, and charges nothing, not even attempts.
    fn look(&self, batch: &Batch<'_>) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Settles requests that have passed, in this order.
    fn settle(&self, settlements: &[Settlement<'_>]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Resets what was counted under these keys.
    fn reset(&self, keys: &[KeyHash]) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Why a store returned no verdicts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// Redis does not answer, and a limit denies during an outage.
    #[error("redis does not answer")]
    Outage,
    /// This gateway is too busy to ask Redis, which may well answer.
    #[error("the gateway is too busy to ask redis")]
    Overload,
    /// Another process had taken over the counts, and is gone.
    #[error("the process that has taken over is gone")]
    SuccessorGone,
}

/// Observes the calls of a shared store, for metrics.
pub trait Observer: Send + Sync + fmt::Debug {
    /// Redis answered a decision after this time.
    fn round_trip(&self, span: Duration);

    /// Redis did not answer a decision, or is known to be down and was not asked; `cause` is a label.
    fn failed(&self, cause: &'static str);

    /// A server was up until now, and is down.
    fn went_down(&self);

    /// A request was refused because this gateway is too busy to ask.
    fn overloaded(&self);

    /// A decision was paid by leases, without a call.
    fn leased(&self) {}
}
