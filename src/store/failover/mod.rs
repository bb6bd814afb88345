//! Redis, and what holds while it is down.
//!
#![doc = include_str!("states.md")]

mod banned;
mod local_slots;
mod outage;
mod outcome;
mod share;
mod skew;

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::local_slots::LocalSlots;
use self::outcome::known_here;
use self::skew::Skew;
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
use super::redis::RedisDecision;
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
    local_slots: LocalSlots,
    skew: Arc<Skew>,
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
            local_slots: LocalSlots::default(),
            skew: Arc::default(),
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
            local_slots: LocalSlots::default(),
            skew: Arc::clone(&self.skew),
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
    pub fn shared(&self) -> &Arc<redis::SharedRedis> {
        self.redis.shared()
    }

    /// Appends an entry to a stream in Redis, and cuts it to about `max` of them. Fails with the words of the server.
    pub async fn append(
        &self,
        key: &str,
        max: u64,
        fields: &[(&'static str, String)],
    ) -> Result<(), (redis::links::Failure, String)> {
        self.redis.append(key, max, fields).await
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
        let remembered = self.local.knows(here);
        let verdict = |(charge, denial): (&Charge<'_>, Option<Denial>)| match denial {
            Some(denial) => self.denied_verdict(charge, denial),
            None if charge.unless_known && remembered => Verdict::exempt(),
            // Whether the client is known, Redis was not asked: this is not what denies.
            None if charge.unless_known && !here.known.is_empty() => {
                Verdict { retry_after: None, ..self.local.look_at(charge) }
            }
            None => self.local.look_at(charge),
        };
        here.charges.iter().zip(denials).map(verdict).collect()
    }

    /// Counts here what Redis has charged.
    fn mirror(&self, here: &Batch<'_>, decided: &RedisDecision) {
        let charged = |place: usize| Some(decided.verdicts[place].as_ref()?.charged.as_ref()?.moment);
        if let Some(moment) = (0..decided.verdicts.len()).find_map(charged) {
            self.skew.learn(moment, self.clock.now());
            self.local.mirror(here, |place| charged(place).map(|moment| self.skew.here(moment)));
        }
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
        let retry_after = Some(self.local.unsettled().shortened(charge, retry_after));
        Verdict { retry_after, standings, charged: None, is_exempt: false }
    }
}

impl Store for Failover {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        if batch.charges.is_empty() {
            return Ok(Vec::new());
        }
        let sent = self.clock.now();
        let (watches, remembered) = {
            let here = here(batch);
            if let Some(denials) = self.denied.answer(&here, sent) {
                return Ok(self.deny(&here, denials));
            }
            (self.local.unsettled().watches(&here), self.local.knows(&here))
        };
        let epoch = self.denied.epoch();
        let mut decided = self.redis.decide(batch, remembered).await;
        let here = here(batch);
        let mut verdicts = if decided.verdicts.iter().all(Option::is_some) {
            Ok(decided.verdicts.iter().flatten().cloned().collect())
        } else {
            self.decide_in_outage(batch, &here, remembered, &mut decided)
        };
        if let Ok(verdicts) = &mut verdicts {
            self.local.unsettled().note(&here, watches, verdicts);
        }
        // At last, when it is known what stays charged.
        self.denied.note(&here, &decided.verdicts, sent, epoch, |key| self.local.unsettled().any(key));
        self.mirror(&here, &decided);
        if !remembered && decided.verdicts.iter().flatten().any(|verdict| verdict.is_exempt) {
            self.acquaint(&here);
        }
        verdicts
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        let here = here(batch);
        let remembered = self.local.knows(&here);
        let verdicts = self.redis.look(batch, remembered).await;
        self.look_in_outage(&here, remembered, verdicts)
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        let in_redis: Vec<Settlement<'_>> = settlements.iter().filter_map(|one| self.settle_here(one)).collect();
        if in_redis.is_empty() {
            return Ok(());
        }
        let settled = self.redis.settle(&in_redis).await;
        // Everyone hears of it, but nobody waits for that here.
        let resets = self.resets();
        settled.reopened.iter().for_each(|key| resets.reopened(*key));
        for settlement in settlements {
            if let Settlement::Reset { key, .. } = settlement {
                resets.reset(*key, settled.reset_at(*key));
            }
        }
        Ok(())
    }

    async fn reset(&self, keys: &[KeyHash]) -> Result<(), StoreError> {
        let settled = self.redis.reset(keys).await;
        let resets = self.resets();
        for key in keys {
            resets.reset(*key, settled.reset_at(*key));
        }
        if settled.complete { Ok(()) } else { Err(StoreError::Outage) }
    }
}

/// The batch under the keys of this process.
fn here<'p>(batch: &Batch<'p>) -> Batch<'p> {
    let charges = batch.charges.iter();
    let charges = charges.map(|charge| Charge { key: resets::local_key(charge.key), ..charge.clone() });
    Batch { charges: charges.collect(), known: batch.known.iter().copied().map(known_here).collect() }
}

/// About 150 bytes each: whoever keeps more keys than this exhausted pays for them with questions to Redis.
const MOST_DENIED: usize = 100_000;
