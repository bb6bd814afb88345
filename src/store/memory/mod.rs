//! Counts in this process: sharded, bounded, and never forgetting a key that is being refused.

mod forget;
mod shard;

use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use self::shard::Shard;
use super::Store;
use super::StoreError;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Reservation;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::key::KeyHash;
use crate::limit::Count;
use crate::limit::Rule;
use crate::limit::Standing;
use crate::limit::State;

/// How much is remembered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub max_keys: usize,
}

/// The memory store.
///
/// A key lives in one of up to 64 shards, each behind its own lock. A batch holds the locks of all shards it touches,
/// taken in ascending order, from its first look until it is charged.
pub struct MemoryStore {
    clock: Clock,
    shards: Box<[Padded<Mutex<Shard>>]>,
}

/// Alone on its cache lines, so that cores at work on neighbouring shards do not wait for each other.
#[repr(align(128))]
struct Padded<T>(T);

/// The shards of one batch, locked.
struct Locked<'s>(SmallVec<[(usize, MutexGuard<'s, Shard>); 4]>);

/// One charge of a batch on its way to a verdict.
struct Case<'b, 'p> {
    charge: &'b Charge<'p>,
    /// Which of the locked shards.
    shard: usize,
    /// Where in the shard; `None` while the key is unknown.
    place: Option<usize>,
    retry_after: Option<Duration>,
    /// There is no room to remember this key.
    turned_away: bool,
}

impl MemoryStore {
    pub fn new(settings: &Settings, clock: Clock) -> Self {
        let wanted = (settings.max_keys / KEYS_WORTH_A_SHARD).clamp(1, MAX_SHARDS);
        // A power of two, so that a few bits of the hash choose.
        let count = 1 << wanted.ilog2();
        let bounds =
            (0..count).map(|number| settings.max_keys / count + usize::from(number < settings.max_keys % count));
        Self { clock, shards: bounds.map(|bound| Padded(Mutex::new(Shard::new(bound)))).collect() }
    }

    /// How many keys are remembered. Keys that expired count until something is remembered in their stead.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.lock().len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn decide_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        let mut locked = self.lock(batch);
        // Read under the locks, so that time never runs backwards for a key.
        let now = self.clock.now();
        let mut cases = self.look_up(batch, &locked, now);
        let admitted = admit(&mut cases, &mut locked, batch, now);
        let binding_passes = binding_passes(&cases);
        let charged: SmallVec<[bool; 4]> =
            cases.iter().map(|case| is_charged(case, passes(case, &cases, binding_passes))).collect();
        let verdicts =
            cases.iter().zip(charged).map(|(case, charged)| conclude(case, charged, &mut locked, now)).collect();
        if admitted > 0 {
            for (_, shard) in &mut locked.0 {
                shard.sweep(now, admitted);
            }
        }
        verdicts
    }

    /// Which shard a key lives in: bits of the hash that its index does not look at.
    #[expect(clippy::cast_possible_truncation, reason = "a few bits are what is wanted")]
    fn shard_of(&self, key: KeyHash) -> usize {
        let upper = (key.0 >> 64) as usize;
        upper & (self.shards.len() - 1)
    }

    fn lock(&self, batch: &Batch<'_>) -> Locked<'_> {
        let mut numbers: SmallVec<[usize; 8]> = batch.charges.iter().map(|charge| self.shard_of(charge.key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Locked(numbers.into_iter().map(|number| (number, self.shards[number].0.lock())).collect())
    }

    fn look_up<'b, 'p>(
        &self,
        batch: &'b Batch<'p>,
        locked: &Locked<'_>,
        now: Timestamp,
    ) -> SmallVec<[Case<'b, 'p>; 4]> {
        let look_up = |charge: &'b Charge<'p>| {
            let number = self.shard_of(charge.key);
            let shard = locked.0.iter().position(|(locked, _)| *locked == number).expect("its shard was locked");
            let place = locked.0[shard].1.find(charge.key);
            let opens = match place {
                Some(place) => locked.0[shard].1.state(place).opens_at(charge.rule, now),
                None => State::fresh(charge.rule).opens_at(charge.rule, now),
            };
            let retry_after = opens.map(|opens| opens.since(now));
            Case { charge, shard, place, retry_after, turned_away: false }
        };
        batch.charges.iter().map(look_up).collect()
    }
}

/// Makes room for every key that is to be charged and is not known yet; answers how many.
///
/// A key for which there is no room is refused, and with it all that would have passed together with it. What was
/// admitted for them already is left as it is: it has counted nothing and goes first when room is needed again.
fn admit(cases: &mut [Case<'_, '_>], locked: &mut Locked<'_>, batch: &Batch<'_>, now: Timestamp) -> usize {
    let mut admitted = 0;
    loop {
        let binding_passes = binding_passes(cases);
        let is_unknown = |case: &&Case<'_, '_>| {
            case.place.is_none() && !case.turned_away && is_charged(case, passes(case, cases, binding_passes))
        };
        let Some(position) = cases.iter().position(|case| is_unknown(&case)) else { return admitted };
        let case = &mut cases[position];
        match locked.0[case.shard].1.admit(case.charge.key, case.charge.rule, batch, now) {
            Ok(place) => {
                case.place = Some(place);
                admitted += 1;
            }
            Err(full) => {
                case.turned_away = true;
                case.retry_after = case.retry_after.or(Some(full.retry_after));
            }
        }
    }
}

fn binding_passes(cases: &[Case<'_, '_>]) -> bool {
    cases.iter().all(|case| case.charge.force == Force::Shadow || case.retry_after.is_none())
}

/// Whether everything has room that passes together with this charge.
fn passes(case: &Case<'_, '_>, cases: &[Case<'_, '_>], binding_passes: bool) -> bool {
    match case.charge.force {
        Force::Binding => binding_passes,
        Force::Shadow => {
            let mut alone = cases.iter().filter(|other| other.charge.limit == case.charge.limit);
            alone.all(|other| other.retry_after.is_none())
        }
    }
}

/// Whether the charge is counted. A request that is denied is an attempt, but never in flight.
fn is_charged(case: &Case<'_, '_>, passes: bool) -> bool {
    passes || (case.charge.count == Count::Attempts && matches!(case.charge.rule, Rule::Rates { .. }))
}

fn conclude(case: &Case<'_, '_>, charged: bool, locked: &mut Locked<'_>, now: Timestamp) -> Verdict {
    let Case { charge, retry_after, .. } = case;
    let shard = &mut locked.0[case.shard].1;
    let standings = match case.place {
        Some(place) if charged => shard.charge(place, charge.rule, now),
        Some(place) if retry_after.is_some() => shard.assess(place, charge.rule, now),
        Some(place) => shard.state(place).standings(charge.rule, now),
        None => {
            let mut standings = State::fresh(charge.rule).standings(charge.rule, now);
            if let Some(reset) = *retry_after {
                standings.fill(Standing { remaining: 0, reset });
            }
            standings
        }
    };
    Verdict { retry_after: *retry_after, standings }
}

impl Store for MemoryStore {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        Ok(self.decide_now(batch))
    }

    async fn settle(&self, reservations: &[Reservation]) -> Result<(), StoreError> {
        for reservation in reservations {
            self.shards[self.shard_of(reservation.key)].0.lock().release(reservation.key);
        }
        Ok(())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

/// More shards than cores, so that two cores seldom want the same one.
const MAX_SHARDS: usize = 64;

/// Shards fill unevenly; the larger they are, the less it shows. Below twice this there is one, and the bound is exact.
const KEYS_WORTH_A_SHARD: usize = 1024;

#[cfg(test)]
mod tests;
