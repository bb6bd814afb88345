//! Counts in Redis, as one core reaches them.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::core::Core;
use super::decided::RedisDecision;
use super::detached;
use super::in_flight::InFlight;
use super::settle::SettleOutcome;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::key::KeyHash;
use crate::key::KeyHasher;
use crate::store::Observer;
use crate::store::redis::settings::Settings;
use crate::store::redis::settings::Time;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::shared::SharedRedis;

/// Counts in Redis, as one core reaches them.
#[derive(Debug)]
pub struct RedisStore {
    pub(in crate::store::redis) core: Arc<Core>,
}

impl RedisStore {
    /// The store of the first core. Nothing is connected yet.
    pub fn new(settings: Settings, time: Time, observer: Arc<dyn Observer>) -> Self {
        Self::of_core(Arc::new(SharedRedis::new(settings, time, observer)))
    }

    /// The same counts over connections of its own.
    #[must_use]
    pub fn on_another_core(&self) -> Self {
        Self::of_core(Arc::clone(&self.core.shared))
    }

    /// The same, for a task of this core.
    pub(in crate::store) fn on_same_core(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }

    fn of_core(shared: Arc<SharedRedis>) -> Self {
        let links = Links::new(&shared);
        Self { core: Arc::new(Core { shared, links, in_flight: InFlight::default(), tasks: TaskTracker::new() }) }
    }

    /// What the cores share, for the task that watches over the servers.
    pub fn shared(&self) -> &Arc<SharedRedis> {
        &self.core.shared
    }

    pub fn hasher(&self) -> KeyHasher {
        self.core.shared.hasher.clone()
    }

    /// Decides all charges whose servers answer: all or none of them.
    ///
    /// `remembered`: whether the client is known, where no server can say.
    pub async fn decide(&self, batch: &Batch<'_>, remembered: bool) -> RedisDecision {
        let is_simple = self.core.is_one_slot(batch) && !batch.charges.iter().any(Charge::is_slot);
        // Who hangs up on the way must neither keep slots nor leave the first half of a decision behind.
        if is_simple {
            self.core.decide(batch, remembered).await
        } else {
            Box::pin(detached::decide(&self.core, batch, remembered)).await
        }
    }

    /// Where the keys stand; nothing is charged.
    pub async fn look(&self, batch: &Batch<'_>, remembered: bool) -> Vec<Option<Verdict>> {
        self.core.look(batch, remembered).await
    }

    /// Takes back what was charged at these places of the batch: another store denied the request. This is not waited
    /// for.
    pub fn give_back(&self, batch: &Batch<'_>, decided: &mut RedisDecision, places: &[usize]) {
        detached::give_back(&self.core, batch, decided, places);
    }

    /// Takes note of what became of requests: slots in flight are those that were taken by this core. What was charged
    /// in this process alone is none of this store's.
    pub async fn settle(&self, settlements: &[Settlement<'_>]) -> SettleOutcome {
        self.core.settle(settlements).await
    }

    /// Resets keys, and tells every gateway.
    pub async fn reset(&self, keys: &[KeyHash]) -> SettleOutcome {
        self.core.reset(keys).await
    }

    /// What goes on though nobody waits for it.
    pub fn tasks(&self) -> &TaskTracker {
        &self.core.tasks
    }
}
