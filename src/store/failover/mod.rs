//! Redis, and what holds while it is away.

mod apart;
mod away;
mod banned;
mod share;

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::apart::Apart;
use self::apart::Place;
use super::Bans;
use super::Observer;
use super::Settings;
use super::Store;
use super::StoreError;
use super::denied_until::Denial;
use super::denied_until::Denials;
use super::denied_until::DeniedUntil;
use super::memory::MemoryStore;
use super::redis;
use super::redis::RedisStore;
use super::redis::Time;
use super::resets;
use super::resets::Resets;
use crate::client::KeyRing;
use crate::clock::Clock;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Settlement;
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
    apart: Apart,
    nodes: NonZeroU32,
    clock: Clock,
}

impl Failover {
    /// The store of the first core. Nothing is connected yet. A clock that is moved by hand is Redis' clock too.
    pub fn new(settings: &Settings, redis: redis::Settings, clock: Clock, observer: Arc<dyn Observer>) -> Self {
        let time = match &clock {
            Clock::System { .. } => Time::OfServer,
            Clock::Manual(_) => Time::Given(clock.clone()),
        };
        Self {
            redis: RedisStore::new(redis, time, observer),
            local: Arc::new(MemoryStore::new(&settings.memory, clock.clone())),
            denied: Arc::new(DeniedUntil::new(MOST_DENIED)),
            apart: Apart::default(),
            nodes: settings.nodes,
            clock,
        }
    }

    #[must_use]
    pub fn on_another_core(&self) -> Self {
        Self {
            redis: self.redis.on_another_core(),
            local: Arc::clone(&self.local),
            denied: Arc::clone(&self.denied),
            apart: Apart::default(),
            nodes: self.nodes,
            clock: self.clock.clone(),
        }
    }

    /// The bans that this process knows of.
    pub fn bans(&self) -> &Arc<Bans> {
        self.local.bans()
    }

    pub fn hasher(&self) -> KeyHasher {
        self.redis.hasher()
    }

    /// Looks after the servers and hears of resets until it is stopped: one task for the process.
    pub fn watch(&self, stop: CancellationToken) -> impl Future<Output = ()> + Send + use<> {
        redis::watch::watch(Arc::clone(self.redis.shared()), self.resets(), stop)
    }

    /// What the cores share of Redis.
    pub fn shared(&self) -> &Arc<redis::Shared> {
        self.redis.shared()
    }

    /// What is to be told of every reset that is heard of.
    fn resets(&self) -> Resets {
        Resets::new(&self.denied, &self.local)
    }

    /// The keys that the gateway signs with: those of all gateways on this Redis, once it has told them.
    pub fn ring(&self) -> &Arc<KeyRing> {
        self.shared().ring()
    }

    /// How many keys are remembered in memory.
    pub fn len(&self) -> usize {
        self.local.len()
    }

    pub fn is_empty(&self) -> bool {
        self.local.is_empty()
    }

    /// What this core sends though nobody waits for it.
    pub fn tasks(&self) -> &TaskTracker {
        self.redis.tasks()
    }

    /// The answer to a batch that Redis has denied before. What is not known of stands as it was counted here: that is
    /// no more than Redis has counted, so that what denies here denies there as well.
    fn deny(&self, here: &Batch<'_>, denials: Denials) -> Vec<Verdict> {
        let verdict = |(charge, denial): (&Charge<'_>, Option<Denial>)| match denial {
            Some(denial) => self.denied_verdict(charge, denial),
            None => self.local.look_at(charge),
        };
        here.charges.iter().zip(denials).map(verdict).collect()
    }

    /// What Redis said last, as far as it still holds.
    fn denied_verdict(&self, charge: &Charge<'_>, denial: Denial) -> Verdict {
        let Denial { retry_after, standings } = denial;
        let standings = if standings.iter().all(Option::is_some) {
            standings.into_iter().flatten().collect()
        } else {
            let counted = self.local.look_at(charge).standings;
            standings.into_iter().zip(counted).map(|(said, counted)| said.unwrap_or(counted)).collect()
        };
        Verdict { retry_after: Some(retry_after), standings, charged: None, is_exempt: false }
    }
}

impl Store for Failover {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        if batch.charges.is_empty() {
            return Ok(Vec::new());
        }
        let sent = self.clock.now();
        let watches = {
            let here = here(batch);
            if let Some(denials) = self.denied.answer(&here, sent) {
                return Ok(self.deny(&here, denials));
            }
            self.local.unsettled().watches(&here)
        };
        let epoch = self.denied.epoch();
        let mut decided = self.redis.decide(batch, false).await;
        let here = here(batch);
        let mut verdicts = if decided.verdicts.iter().all(Option::is_some) {
            Ok(decided.verdicts.iter().flatten().cloned().collect())
        } else {
            self.decide_away(batch, &here, &mut decided)
        };
        if let Ok(verdicts) = &mut verdicts {
            self.local.unsettled().note(&here, watches, verdicts);
        }
        // At last, when it is known what stays charged.
        self.denied.note(&here, &decided.verdicts, sent, epoch);
        self.local.mirror(&here, |place| decided.is_charged(place));
        verdicts
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        let verdicts = self.redis.look(batch, false).await;
        self.look_away(&here(batch), verdicts)
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        let mut in_redis = Vec::new();
        for settlement in settlements {
            let Settlement::Release(key) = settlement else { todo!("settled by outcome") };
            let place = self.apart.give_back(*key);
            if place != Place::Nowhere {
                self.local.release(resets::here(*key));
            }
            if place == Place::InRedis {
                in_redis.push(settlement.clone());
            }
        }
        if !in_redis.is_empty() {
            self.redis.settle(&in_redis).await;
        }
        Ok(())
    }

    async fn forget(&self, keys: &[KeyHash]) -> Result<(), StoreError> {
        let is_forgotten = self.redis.forget(keys).await;
        let resets = self.resets();
        for key in keys {
            resets.forget(*key);
        }
        if is_forgotten { Ok(()) } else { Err(StoreError::Away) }
    }
}

/// The batch under the keys of this process.
fn here<'p>(batch: &Batch<'p>) -> Batch<'p> {
    let charges = batch.charges.iter();
    let charges = charges.map(|charge| Charge { key: resets::here(charge.key), ..charge.clone() });
    Batch { charges: charges.collect(), known: batch.known.clone() }
}

/// About 150 bytes each: whoever keeps more keys than this exhausted pays for them with questions to Redis.
const MOST_DENIED: usize = 100_000;
