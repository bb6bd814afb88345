//! Where counts are kept. Stores decide batches and know nothing of requests.

pub mod bans;
pub mod denied_until;
pub mod failover;
pub mod handover;
pub mod memory;
pub mod redis;
pub mod resets;
pub mod snapshot;
pub mod unsettled;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::client::KeyRing;
use crate::decision::Batch;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::key::KeyHasher;
use crate::limit::OnFailure;

pub use self::bans::Bans;
pub use self::failover::Failover;
pub use self::memory::MemoryStore;

/// The `store` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub memory: memory::Settings,
    /// `None`: counts are kept in memory alone.
    pub redis: Option<redis::Settings>,
    /// What holds while Redis does not answer, where a limit does not say.
    pub on_failure: OnFailure,
    /// How many gateways share the Redis: without it each grants its share of every limit.
    pub nodes: NonZeroU32,
}

/// What keeps counts.
pub trait Store: Send + Sync {
    /// Decides a whole batch in one step: it is charged to every limit, or to none.
    ///
    /// Answers in the order of the batch.
    fn decide(&self, batch: &Batch<'_>) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Answers where every key stands as `decide` would find it now, and charges nothing: nobody's attempt either.
    fn look(&self, batch: &Batch<'_>) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Takes note of what became of requests that it has let pass, in this order.
    fn settle(&self, settlements: &[Settlement<'_>]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Forgets what was counted under these keys.
    fn reset(&self, keys: &[KeyHash]) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The stores there are, as one type: no boxing per request. Each core has its own, and all of one process count
/// together.
#[derive(Debug)]
pub enum AnyStore {
    Memory(Arc<MemoryStore>),
    /// Redis, and what holds while it is away.
    Shared(Failover),
}

/// Why a store gave no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// Redis does not answer, and a limit denies meanwhile.
    #[error("redis does not answer")]
    Outage,
    /// Another process had taken the counts over.
    #[error("the process that has taken over is gone")]
    SuccessorGone,
}

/// Who is told what a shared store does, for metrics.
pub trait Observer: Send + Sync + std::fmt::Debug {
    /// A decision was asked for and answered within this span.
    fn round_trip(&self, span: Duration);

    /// A decision was not answered; `cause` is a word for a label.
    fn failed(&self, cause: &'static str);
}

impl AnyStore {
    /// The same counts for another core, reached over connections of its own.
    #[must_use]
    pub fn on_another_core(&self) -> Self {
        match self {
            Self::Memory(store) => Self::Memory(Arc::clone(store)),
            Self::Shared(store) => Self::Shared(store.on_another_core()),
        }
    }

    /// What hashes keys for this store: with a secret of this process, or one that all gateways on a Redis share.
    pub fn hasher(&self) -> KeyHasher {
        match self {
            Self::Memory(store) => store.hasher(),
            Self::Shared(store) => store.hasher(),
        }
    }
}

impl AnyStore {
    /// The keys that the gateway signs with: the same for all gateways that share the store.
    pub fn ring(&self) -> &Arc<KeyRing> {
        match self {
            Self::Memory(store) => store.ring(),
            Self::Shared(store) => store.ring(),
        }
    }

    /// The same, and what hashes keys for people, in logs and masks: as all gateways on the store do, and nobody who only
    /// knows its name.
    pub fn hashers(&self) -> Hashers {
        Hashers { counted: self.hasher(), shown: KeyHasher::new(self.ring().shown()) }
    }

    /// Whether requests that this process let pass under this key wait for their outcome, and may give back what they
    /// took.
    pub async fn is_unsettled(&self, key: KeyHash) -> bool {
        match self {
            Self::Memory(store) => store.is_unsettled(key).await,
            Self::Shared(store) => store.is_unsettled(key),
        }
    }

    /// What this core sends though nobody waits for it, slots in flight given back above all.
    pub fn tasks(&self) -> &TaskTracker {
        match self {
            Self::Memory(store) => store.handover().tasks(),
            Self::Shared(store) => store.tasks(),
        }
    }

    /// Settles what needs no sending, in this order; answers how many that were. The others are for `settle`.
    pub fn settle_here(&self, settlements: &[Settlement<'_>]) -> usize {
        match self {
            Self::Memory(store) => store.settle_here(settlements),
            Self::Shared(_) => 0,
        }
    }

    /// Waits until this core has sent what it still had to say, but no longer than a moment: what Redis is not told,
    /// it finds out when leases end.
    pub async fn finish(&self) {
        let tasks = self.tasks();
        tasks.close();
        drop(timeout(FAREWELL, tasks.wait()).await);
    }
}

// What goes to Redis waits on the heap: a request that memory decides is not to make room for it.
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

/// How long the end of a process waits for a Redis that does not answer.
const FAREWELL: Duration = Duration::from_millis(500);
