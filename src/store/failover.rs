//! Redis, and what holds while it is away.

use std::sync::Arc;

use super::Observer;
use super::Settings;
use super::Store;
use super::StoreError;
use super::denied_until::DeniedUntil;
use super::memory::MemoryStore;
use super::redis;
use super::redis::RedisStore;
use crate::clock::Clock;
use crate::decision::Batch;
use crate::decision::Reservation;
use crate::decision::Verdict;
use crate::key::KeyHash;
use crate::key::KeyHasher;

/// A shared store that never keeps a request waiting for a dead Redis.
///
/// What Redis admits is counted in memory too, so that `local` goes on from there when Redis goes away.
#[derive(Debug)]
pub struct Failover {
    redis: RedisStore,
    local: Arc<MemoryStore>,
    denied: Arc<DeniedUntil>,
    clock: Clock,
}

impl Failover {
    /// The store of the first core. Nothing is connected yet.
    pub fn new(_settings: &Settings, _redis: redis::Settings, _clock: Clock, _observer: Arc<dyn Observer>) -> Self {
        todo!()
    }

    #[must_use]
    pub fn on_another_core(&self) -> Self {
        Self {
            redis: self.redis.on_another_core(),
            local: Arc::clone(&self.local),
            denied: Arc::clone(&self.denied),
            clock: self.clock.clone(),
        }
    }

    pub fn hasher(&self) -> KeyHasher {
        self.redis.hasher()
    }
}

impl Store for Failover {
    async fn decide(&self, _batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        todo!()
    }

    async fn look(&self, _batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        todo!()
    }

    async fn settle(&self, _reservations: &[Reservation]) -> Result<(), StoreError> {
        todo!()
    }

    async fn forget(&self, _keys: &[KeyHash]) -> Result<(), StoreError> {
        todo!()
    }
}
