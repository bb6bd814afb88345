//! Counts in this process: sharded, bounded, and never forgetting a key that is being refused.

use super::Store;
use super::StoreError;
use crate::clock::Clock;
use crate::decision::Batch;
use crate::decision::Reservation;
use crate::decision::Verdict;

/// How much is remembered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub max_keys: usize,
}

/// The memory store.
#[derive(Debug)]
pub struct MemoryStore {}

impl MemoryStore {
    pub fn new(_settings: &Settings, _clock: Clock) -> Self {
        todo!()
    }

    /// How many keys are remembered.
    pub fn len(&self) -> usize {
        todo!()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Store for MemoryStore {
    async fn decide(&self, _batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        todo!()
    }

    async fn settle(&self, _reservations: &[Reservation]) -> Result<(), StoreError> {
        todo!()
    }
}
