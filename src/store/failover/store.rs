//! The store that asks Redis and decides by itself during an outage.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::rules::decision::batch::{Charged, Ledger};
use crate::rules::decision::{Batch, Charge, Grounds, Settlement, Verdict};
use crate::rules::key::{KeyHash, KeyHasher};
use crate::rules::limit::{Algorithm, Rule};
use crate::store::any_store::Nodes;
use crate::store::denied_until::{Denial, Denials, DeniedUntil};
use crate::store::failover::outage::{LocalSlots, SlotLocation, local_client, share, to_local_keys};
use crate::store::key_ring::Resets;
use crate::store::leases::SpentLeases;
use crate::store::memory::MemoryStore;
use crate::store::redis::{RedisDecision, RedisStore, Time};
use crate::store::unsettled::was_reset;
use crate::store::{Bans, LiveKeyRing, Observer, Sessions, Store, StoreError, StoreSettings, key_ring, redis};
use crate::words::clock::{Clock, Timestamp};
use crate::words::pending_reservations::ToldLater;

/// About 150 bytes each. With more exhausted keys than this, some denials need a call to Redis.
const MOST_DENIED: usize = 100_000;

/// A shared store that never makes a request wait for a Redis that is down.
///
/// Charges of Redis are counted in memory too, so that `on_failure: local` continues from there during an outage.
#[derive(Debug)]
pub struct Failover {
    pub(super) redis: RedisStore,
    pub(super) local: Arc<MemoryStore>,
    pub(super) denied: Arc<DeniedUntil>,
    pub(super) local_slots: LocalSlots,
    pub(super) skew: Arc<ClockSkew>,
    pub(super) clock: Clock,
}

impl Store for Failover {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        if batch.charges.is_empty() {
            return Ok(Vec::new());
        }
        let spent = SpentLeases::spend(&self.shared().leases, batch);
        if spent.is_any() { self.decide_rest(batch, spent).await } else { self.decide_unpaid(batch).await }
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        let local_batch = to_local_keys(batch);
        let remembered = self.local.is_known(&local_batch);
        let verdicts = self.redis.look(batch, remembered).await;
        self.look_in_outage(&local_batch, remembered, verdicts)
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        let in_redis: Vec<Settlement<'_>> = settlements.iter().filter_map(|one| self.settle_here(one)).collect();
        if in_redis.is_empty() {
            return Ok(());
        }
        let settled = self.redis.settle(&in_redis).await;
        // Redis publishes the resets to all gateways; this process applies them at once.
        let resets = self.resets();
        settled.reopened.iter().for_each(|key| resets.reopened(*key));
        for settlement in settlements {
            if let Settlement::Reset(key) = settlement {
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

// Whether a key surely has room in Redis, as far as this process knows.

/// A key has room for sure while one part in so many, at least, is not used by this process.
const PARTS: u64 = 2;

impl Failover {
    /// The store of the first core. Nothing is connected yet. A manual clock is used for Redis too.
    pub fn new(
        settings: &StoreSettings,
        redis: redis::RedisSettings,
        clock: Clock,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let time = match &clock {
            Clock::System { .. } => Time::OfServer,
            Clock::Manual(_) => Time::Given(clock.clone()),
        };
        let local = MemoryStore::new(&settings.memory, clock.clone());
        local.sessions().share();
        let redis = RedisStore::new(redis, time, observer);
        if let Nodes::Fixed(nodes) = settings.nodes {
            redis.shared().fix_nodes(nodes);
        }
        Self {
            redis,
            local: Arc::new(local),
            denied: Arc::new(DeniedUntil::new(MOST_DENIED)),
            local_slots: LocalSlots::default(),
            skew: Arc::default(),
            clock,
        }
    }

    /// The same counts for another core, with connections of its own.
    #[must_use]
    pub fn on_another_core(&self) -> Self {
        Self {
            redis: self.redis.on_another_core(),
            local: Arc::clone(&self.local),
            denied: Arc::clone(&self.denied),
            local_slots: LocalSlots::default(),
            skew: Arc::clone(&self.skew),
            clock: self.clock.clone(),
        }
    }

    /// The bans that this process knows.
    pub fn bans(&self) -> &Arc<Bans> {
        self.local.bans()
    }

    /// The sessions that this process knows.
    pub fn sessions(&self) -> &Arc<Sessions> {
        self.local.sessions()
    }

    pub fn hasher(&self) -> KeyHasher {
        self.redis.hasher()
    }

    /// Monitors the servers and receives resets and bans until it is stopped: one task for the process.
    pub fn watch(&self, stop: CancellationToken) -> impl Future<Output = ()> + Send + use<> {
        redis::settings::watch(Arc::clone(self.redis.shared()), self.resets(), stop)
    }

    /// The state of Redis that the cores of this process share.
    pub fn shared(&self) -> &Arc<redis::SharedRedis> {
        self.redis.shared()
    }

    /// Appends an entry to a stream in Redis, and trims the stream to about `max` entries. Fails with the error text of
    /// the server.
    pub async fn append(
        &self,
        key: &str,
        max: u64,
        fields: &[(&'static str, String)],
    ) -> Result<(), (redis::Failure, String)> {
        self.redis.append(key, max, fields).await
    }

    /// Whether nobody else has claimed `what`, which this process then holds for that time; `None`: Redis does not say.
    pub async fn claim(&self, what: &str, held: Duration) -> Option<bool> {
        self.redis.claim(what, held).await
    }

    /// Applies the resets of all gateways in this process.
    fn resets(&self) -> Resets {
        Resets::new(&self.denied, &self.local, self.key_ring())
    }

    /// The keys that the gateway signs with: those of all gateways on this Redis, as soon as Redis has sent them.
    pub fn key_ring(&self) -> &Arc<LiveKeyRing> {
        self.shared().key_ring()
    }

    /// How many keys are remembered in memory.
    pub fn len(&self) -> usize {
        self.local.len()
    }

    /// How many new keys found no room in memory so far.
    pub fn turned_away(&self) -> u64 {
        self.local.turned_away()
    }

    pub fn is_empty(&self) -> bool {
        self.local.is_empty()
    }

    /// Gives back all leases and the part of this process, in a task, because it ends.
    pub(in crate::store) fn leave(&self) {
        self.redis.leave();
    }

    /// Tasks of this core that no request waits for.
    pub fn tasks(&self) -> &TaskTracker {
        self.redis.tasks()
    }

    /// The verdicts for a batch that Redis has denied before. Keys without a known denial are looked at as they are counted
    /// in this process. That is never more than Redis has counted, so whatever denies here would deny there as well. How such
    /// a key stands is told only where no other gateway counts it.
    fn deny(&self, local_batch: &Batch<'_>, denials: Denials) -> Vec<Verdict> {
        let remembered = self.local.is_known(local_batch);
        let verdict = |(charge, denial): (&Charge<'_>, Option<Denial>)| match denial {
            Some(denial) => self.denied_verdict(charge, denial),
            None if charge.unless_known && remembered => Verdict::exempt(),
            // Redis was not asked whether the client is known, so this charge must not deny.
            None if charge.unless_known && !local_batch.known.is_empty() => {
                Verdict { retry_after: None, ..self.counted_here(charge) }
            }
            None => self.counted_here(charge),
        };
        local_batch.charges.iter().zip(denials).map(verdict).collect()
    }

    /// The verdict of a key for which Redis is not asked.
    fn counted_here(&self, charge: &Charge<'_>) -> Verdict {
        let mut verdict = self.local.look_at(charge);
        if verdict.passes() && !self.shared().part().is_whole() {
            verdict.standings.clear();
        }
        verdict
    }

    /// Counts in memory what Redis has charged.
    fn mirror(&self, local_batch: &Batch<'_>, decided: &RedisDecision) {
        let charged = |place: usize| Some(decided.verdicts[place].as_ref()?.charged.as_ref()?.moment);
        if let Some(moment) = (0..decided.verdicts.len()).find_map(charged) {
            self.skew.learn(moment, self.clock.now());
            self.local.mirror(local_batch, |place| charged(place).map(|moment| self.skew.here(moment)));
        }
    }

    /// The verdict for a denial that Redis has sent before, as far as it still holds.
    pub(super) fn denied_verdict(&self, charge: &Charge<'_>, denial: Denial) -> Verdict {
        let Denial { retry_after, standings } = denial;
        let standings = if standings.iter().all(Option::is_some) {
            standings.into_iter().flatten().collect()
        } else {
            let counted = self.local.look_at(charge).standings;
            standings.into_iter().zip(counted).map(|(known, counted)| known.unwrap_or(counted)).collect()
        };
        let retry_after = Some(self.local.unsettled().shortened(charge, retry_after));
        Verdict { retry_after, standings, charged: None, is_exempt: false, grounds: Grounds::Count }
    }

    /// Decides a batch of which leases have paid nothing.
    async fn decide_unpaid(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        let sent = self.clock.now();
        let (watches, remembered) = {
            let local_batch = to_local_keys(batch);
            if let Some(denials) = self.denied.answer(&local_batch, sent) {
                return Ok(self.deny(&local_batch, denials));
            }
            (self.local.unsettled().watches(&local_batch), self.local.is_known(&local_batch))
        };
        let epoch = self.denied.epoch();
        let mut decided = self.redis.decide(batch, remembered, |charge| self.surely_has_room(charge)).await;
        let local_batch = to_local_keys(batch);
        let mut verdicts = if decided.is_overload {
            self.refuse_overload(batch, &mut decided)
        } else if decided.verdicts.iter().all(Option::is_some) {
            Ok(decided.verdicts.iter().flatten().cloned().collect())
        } else {
            self.decide_in_outage(batch, &local_batch, remembered, &mut decided)
        };
        if let Ok(verdicts) = &mut verdicts {
            self.local.unsettled().note(&local_batch, watches, verdicts);
        }
        // Last, because only now it is certain which charges stay.
        self.denied.note(&local_batch, &decided.verdicts, sent, epoch, |key| self.local.unsettled().any(key));
        self.mirror(&local_batch, &decided);
        if !remembered && decided.verdicts.iter().flatten().any(|verdict| verdict.is_exempt) {
            self.remember_known_client(&local_batch);
        }
        verdicts
    }

    /// Decides a batch of which leases have paid something. Only the rest of it is asked about, if there is any.
    async fn decide_rest(&self, batch: &Batch<'_>, spent: SpentLeases<'_, '_, '_>) -> Result<Vec<Verdict>, StoreError> {
        let rest = spent.rest();
        let others = if rest.charges.is_empty() {
            self.shared().observer().leased();
            Vec::new()
        } else {
            self.decide_unpaid(&rest).await?
        };
        let now = self.clock.now();
        let paid: SmallVec<[bool; 4]> = (0..batch.charges.len()).map(|place| spent.is_paid(place)).collect();
        let slots = spent.slots();
        let (verdicts, is_spent) = spent.conclude(others, now);
        if is_spent {
            self.redis.note_leased_slots(&slots);
            self.local.mirror(&to_local_keys(batch), |place| paid[place].then_some(now));
        }
        Ok(verdicts)
    }
}

impl Failover {
    /// Whether Redis has room for the charge, as far as is known here: half of each rate, at least, is not used by this process. A
    /// mistake is harmless: the charge is given back.
    pub(super) fn surely_has_room(&self, charge: &Charge<'_>) -> bool {
        let key = key_ring::local_key(charge.key);
        let counted = self.local.look_at(&Charge { key, ..charge.clone() });
        let most = capacities(charge.rule);
        counted.passes()
            && counted.standings.iter().zip(most).all(|(standing, most)| standing.remaining * PARTS >= most)
    }
}

/// How many units each rate has.
fn capacities(rule: &Rule) -> Vec<u64> {
    match rule {
        Rule::Concurrent(most) => vec![u64::from(most.get())],
        Rule::Rates { algorithm: Algorithm::TokenBucket { burst: Some(burst) }, .. } => vec![u64::from(burst.get())],
        Rule::Distinct(rates) | Rule::Rates { rates, .. } => {
            rates.iter().map(|rate| u64::from(rate.count.get())).collect()
        }
    }
}

// Settles requests in Redis and in the copy of its counts in this process.

impl Failover {
    /// Whether reservations of this key wait for their outcome in this process, or may be made by a decision under way.
    pub(in crate::store) fn is_unsettled(&self, key: KeyHash) -> bool {
        self.local.unsettled().may_be_any(key_ring::local_key(key))
    }

    /// Settles the copy in this process. Returns what is still to be settled in Redis.
    pub(super) fn settle_here<'p>(&self, settlement: &Settlement<'p>) -> Option<Settlement<'p>> {
        match *settlement {
            Settlement::Release(key) => {
                let location = self.local_slots.give_back(key);
                if location != SlotLocation::Nowhere {
                    self.local.release(key_ring::local_key(key));
                }
                return (location == SlotLocation::InRedis).then(|| settlement.clone());
            }
            Settlement::TakeBack { key, rule, charged } => match charged.ledger {
                Ledger::Local => {
                    // It was charged at this gateway's share, if that is still the same.
                    let share = share(rule, self.shared().part());
                    self.local.take_back(key_ring::local_key(key), share.as_ref().unwrap_or(rule), charged);
                    return None;
                }
                // A unit of a lease stays spent.
                Ledger::Leased => return None,
                Ledger::Shared => {
                    let charged = Charged { moment: self.skew.here(charged.moment), ..charged.clone() };
                    self.local.take_back(key_ring::local_key(key), rule, &charged);
                }
            },
            Settlement::Keep { key, rule, items, charged } => {
                if was_reset(charged) {
                    self.local.charge_now(key_ring::local_key(key), rule, items);
                }
                if !(was_reset(charged) && charged.ledger == Ledger::Shared) {
                    return None;
                }
            }
            Settlement::Charge { key, rule, items } => self.local.charge_now(key_ring::local_key(key), rule, items),
            // Reset here only after Redis: a decision in between would be mirrored again.
            Settlement::Reset(_) => {}
            // Where Redis answers, it has the last word on whether the client was known.
            Settlement::Remember { of, most, keep, ref was_known } => {
                let (of, was_known) = (local_client(of), was_known.clone());
                self.local.settle_now(&Settlement::Remember { of, most, keep, was_known });
            }
        }
        Some(settlement.clone())
    }

    /// Redis knows this client, so this process remembers it for the next outage. Redis does not say for how long it is
    /// known.
    pub(super) fn remember_known_client(&self, local_batch: &Batch<'_>) {
        for of in &local_batch.known {
            let (most, keep, was_known) = (REMEMBERED_CLIENTS, REMEMBERED_FOR, ToldLater::default());
            self.local.settle_now(&Settlement::Remember { of: *of, most, keep, was_known });
        }
    }
}

/// How many clients of one subject are remembered because Redis knows them.
const REMEMBERED_CLIENTS: NonZeroU32 = NonZeroU32::new(16).expect("above zero");

const REMEMBERED_FOR: Duration = Duration::from_secs(3600);

// Converts moments of Redis to the clock of this process, so that a charge counts at the same moment in both.

/// In microseconds: longer than an answer is on its way.
const TOLERATED: u64 = 2_000_000;

/// How far the clock of this process is ahead of the clock of Redis. Changes of less than [`TOLERATED`] are ignored.
#[derive(Debug, Default)]
pub(super) struct ClockSkew(AtomicI64);

impl ClockSkew {
    /// The clock of Redis showed `there` when this one showed `here`.
    pub(super) fn learn(&self, there: Timestamp, here: Timestamp) {
        let ahead = signed(here).saturating_sub(signed(there));
        if ahead.abs_diff(self.0.load(Ordering::Relaxed)) > TOLERATED {
            self.0.store(ahead, Ordering::Relaxed);
        }
    }

    /// A moment of Redis by the clock of this process.
    pub(super) fn here(&self, there: Timestamp) -> Timestamp {
        let here = signed(there).saturating_add(self.0.load(Ordering::Relaxed));
        Timestamp::from_micros(u64::try_from(here).unwrap_or(0))
    }
}

fn signed(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_same_moment_until_the_clocks_part() {
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        let skew = ClockSkew::default();
        skew.learn(at(100), at(101));
        assert_eq!(skew.here(at(100)), at(100));
        skew.learn(at(100), at(3700));
        assert_eq!(skew.here(at(100)), at(3700));
        skew.learn(at(200), at(3801));
        assert_eq!(skew.here(at(100)), at(3700));
        skew.learn(at(5000), at(100));
        assert_eq!(skew.here(at(5001)), at(101));
        assert_eq!(skew.here(at(1)), Timestamp::EPOCH);
    }
}
