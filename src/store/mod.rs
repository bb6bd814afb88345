//! Where counts are kept. Stores decide batches and know nothing of requests.

pub mod memory;

use crate::decision::Batch;
use crate::decision::Reservation;
use crate::decision::Verdict;

pub use self::memory::MemoryStore;

/// What keeps counts.
pub trait Store: Send + Sync {
    /// Decides a whole batch in one step: it is charged to every limit, or to none.
    ///
    /// Answers in the order of the batch.
    fn decide(&self, batch: &Batch<'_>) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Gives slots in flight back.
    fn settle(&self, reservations: &[Reservation]) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The stores there are, as one type: no boxing per request.
#[derive(Debug)]
pub enum AnyStore {
    Memory(MemoryStore),
}

/// Why a store gave no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {}

impl Store for AnyStore {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self {
            Self::Memory(store) => store.decide(batch).await,
        }
    }

    async fn settle(&self, reservations: &[Reservation]) -> Result<(), StoreError> {
        match self {
            Self::Memory(store) => store.settle(reservations).await,
        }
    }
}
