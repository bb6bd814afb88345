//! Counts in this process: sharded, bounded, and never forgetting a key that is being refused.

mod bans;
mod behind;
mod case;
mod forget;
mod known;
mod moving;
mod settle;
mod shard;
mod slab;
mod survivors;
mod there;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use self::case::Case;
use self::known::Known;
use self::shard::Shard;
use super::Bans;
use super::Store;
use super::StoreError;
use super::handover::Handover;
use super::handover::Moved;
use super::unsettled::Unsettled;
use crate::client::KeyRing;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::key::KeyHash;
use crate::key::KeyHasher;

/// How much is remembered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub max_keys: usize,
    /// Where what has to survive a restart is kept; `None`: it ends with the process.
    pub snapshot: Option<PathBuf>,
}

/// The memory store.
///
/// A key lives in one of up to 64 shards, each behind its own lock. A batch holds the locks of all shards it touches,
/// taken in ascending order, from its first look until it is charged.
///
/// When another process takes over, the counts move there, and every lock says so: whoever finds it [`Moved`] asks the
/// other process instead.
pub struct MemoryStore {
    clock: Clock,
    shards: Box<[Padded<Mutex<Shard>>]>,
    ring: Arc<KeyRing>,
    known: Known,
    unsettled: Unsettled,
    secret: [u8; 16],
    bans: Arc<Bans>,
    handover: Handover,
}

/// Alone on its cache lines, so that cores at work on neighbouring shards do not wait for each other.
#[repr(align(128))]
struct Padded<T>(T);

/// The shards of one batch by their number, locked.
type Locked<'s> = SmallVec<[(usize, MutexGuard<'s, Shard>); 4]>;

/// The charges of one batch, each with the position of its shard among those locked.
type Cases<'b, 'p> = SmallVec<[(Case<'b, 'p>, usize); 4]>;

impl MemoryStore {
    pub fn new(settings: &Settings, clock: Clock) -> Self {
        let wanted = (settings.max_keys / KEYS_WORTH_A_SHARD).clamp(1, MAX_SHARDS);
        // A power of two, so that a few bits of the hash choose.
        let count = 1 << wanted.ilog2();
        let bounds =
            (0..count).map(|number| settings.max_keys / count + usize::from(number < settings.max_keys % count));
        Self {
            ring: Arc::new(KeyRing::new(clock.now())),
            shards: bounds.map(|bound| Padded(Mutex::new(Shard::new(bound)))).collect(),
            known: Known::new(settings.max_keys),
            unsettled: Unsettled::default(),
            secret: random(),
            bans: Arc::new(Bans::new(clock.clone())),
            handover: Handover::default(),
            clock,
        }
    }

    /// The keys that the gateway signs with.
    pub fn ring(&self) -> &Arc<KeyRing> {
        &self.ring
    }

    /// What hashes keys for this store.
    pub fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.secret)
    }

    /// The bans that this process knows of.
    pub fn bans(&self) -> &Arc<Bans> {
        &self.bans
    }

    /// How many keys are remembered. Keys that expired count until something is remembered in their stead.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.lock().len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which reservations wait for their outcome, those of a store in front of this one too.
    pub(super) fn unsettled(&self) -> &Unsettled {
        &self.unsettled
    }

    /// Where the counts are.
    pub(super) fn handover(&self) -> &Handover {
        &self.handover
    }

    fn try_decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, Moved> {
        match batch.charges.as_slice() {
            [] => Ok(Vec::new()),
            _ if self.try_knows(batch)? => without_exempt(batch, |batch| self.try_decide(batch)),
            [charge] => Ok(vec![self.decide_one(charge, batch)?]),
            _ => self.decide_all(batch, true),
        }
    }

    fn try_look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, Moved> {
        if self.try_knows(batch)? {
            return without_exempt(batch, |batch| self.try_look(batch));
        }
        batch.charges.iter().map(|charge| self.try_look_at(charge)).collect()
    }

    /// Whether the client is known, where a charge asks for that.
    fn try_knows(&self, batch: &Batch<'_>) -> Result<bool, Moved> {
        if batch.known.is_empty() || !batch.charges.iter().any(|charge| charge.unless_known) {
            return Ok(false);
        }
        let _here = self.handover.here()?;
        let now = self.clock.now();
        Ok(batch.known.iter().all(|of| self.known.is_known(*of, now)))
    }

    /// Most requests meet one limit: one lock, and nobody to agree with.
    fn decide_one(&self, charge: &Charge<'_>, batch: &Batch<'_>) -> Result<Verdict, Moved> {
        let mut shard = self.shard(charge.key)?;
        let now = self.clock.now();
        let mut case = Case::look_up(charge, &shard, now);
        let passes = |case: &Case<'_, '_>| case.has_room() || charge.force == Force::Delay;
        let is_new = case.place.is_none() && case.is_charged(passes(&case));
        if is_new {
            case.admit(&mut shard, batch, now);
        }
        let verdict = case.conclude(case.is_charged(passes(&case)), &mut shard, &self.unsettled, now);
        if is_new {
            shard.sweep(now, 1);
        }
        Ok(verdict)
    }

    /// Where a key stands.
    fn try_look_at(&self, charge: &Charge<'_>) -> Result<Verdict, Moved> {
        let mut shard = self.shard(charge.key)?;
        let now = self.clock.now();
        Ok(Case::look_up(charge, &shard, now).conclude(false, &mut shard, &self.unsettled, now))
    }

    /// `others_pass`: nothing but this batch can deny what it binds.
    fn decide_all(&self, batch: &Batch<'_>, others_pass: bool) -> Result<Vec<Verdict>, Moved> {
        let mut locked = self.lock(batch)?;
        // Read under the locks, so that time never runs backwards for a key.
        let now = self.clock.now();
        let mut cases = Cases::new();
        for charge in &batch.charges {
            let number = self.shard_of(charge.key);
            let shard = locked.iter().position(|(locked, _)| *locked == number).expect("its shard was locked");
            cases.push((Case::look_up(charge, &locked[shard].1, now), shard));
        }
        let admitted = admit(&mut cases, &mut locked, batch, now, others_pass);
        let binding_passes = others_pass && binding_passes(&cases);
        let mut verdicts = Vec::with_capacity(cases.len());
        for (case, shard) in &cases {
            let charged = case.is_charged(passes(case, &cases, binding_passes));
            verdicts.push(case.conclude(charged, &mut locked[*shard].1, &self.unsettled, now));
        }
        if admitted > 0 {
            locked.iter_mut().for_each(|(_, shard)| shard.sweep(now, admitted));
        }
        Ok(verdicts)
    }

    /// The shard of a key, to count in.
    fn shard(&self, key: KeyHash) -> Result<MutexGuard<'_, Shard>, Moved> {
        self.open(self.shard_of(key))
    }

    fn open(&self, number: usize) -> Result<MutexGuard<'_, Shard>, Moved> {
        let shard = self.shards[number].0.lock();
        if shard.has_moved { Err(Moved) } else { Ok(shard) }
    }

    /// Which shard a key lives in: bits of the hash that its index does not look at.
    #[expect(clippy::cast_possible_truncation, reason = "a few bits are what is wanted")]
    fn shard_of(&self, key: KeyHash) -> usize {
        let upper = (key.0 >> 64) as usize;
        upper & (self.shards.len() - 1)
    }

    fn lock(&self, batch: &Batch<'_>) -> Result<Locked<'_>, Moved> {
        let mut numbers: SmallVec<[usize; 8]> = SmallVec::new();
        for charge in &batch.charges {
            numbers.push(self.shard_of(charge.key));
        }
        numbers.sort_unstable();
        numbers.dedup();
        let mut locked = Locked::new();
        for number in numbers {
            locked.push((number, self.open(number)?));
        }
        Ok(locked)
    }
}

/// Makes room for every key that is to be charged and is not known yet; answers how many.
///
/// A key for which there is no room is refused, and with it all that would have passed together with it. What was
/// admitted for them already is left as it is: it has counted nothing and goes first when room is needed again.
fn admit(
    cases: &mut Cases<'_, '_>,
    locked: &mut Locked<'_>,
    batch: &Batch<'_>,
    now: Timestamp,
    others_pass: bool,
) -> usize {
    let mut admitted = 0;
    if cases.iter().all(|(case, _)| case.place.is_some()) {
        return admitted;
    }
    loop {
        let binding_passes = others_pass && binding_passes(cases);
        let is_new = |case: &Case<'_, '_>| {
            case.place.is_none() && !case.turned_away && case.is_charged(passes(case, cases, binding_passes))
        };
        let Some(next) = cases.iter().position(|(case, _)| is_new(case)) else { return admitted };
        let (case, shard) = &mut cases[next];
        case.admit(&mut locked[*shard].1, batch, now);
        admitted += usize::from(case.place.is_some());
    }
}

/// Has a batch decided but for what does not hold for a known client.
fn without_exempt(
    batch: &Batch<'_>,
    decide: impl Fn(&Batch<'_>) -> Result<Vec<Verdict>, Moved>,
) -> Result<Vec<Verdict>, Moved> {
    let others = batch.charges.iter().filter(|charge| !charge.unless_known).cloned();
    let mut answers = decide(&Batch { charges: others.collect(), ..Batch::default() })?.into_iter();
    let answered = batch.charges.iter().map(|charge| if charge.unless_known { None } else { answers.next() });
    Ok(answered.map(|answer| answer.unwrap_or_else(Verdict::exempt)).collect())
}

fn binding_passes(cases: &Cases<'_, '_>) -> bool {
    cases.iter().all(|(case, _)| case.charge.force != Force::Binding || case.has_room())
}

/// Whether everything has room that passes together with this charge.
fn passes(case: &Case<'_, '_>, cases: &Cases<'_, '_>, binding_passes: bool) -> bool {
    match case.charge.force {
        Force::Binding | Force::Delay => binding_passes,
        Force::Shadow => {
            let mut alone = cases.iter().filter(|(other, _)| other.charge.limit == case.charge.limit);
            alone.all(|(other, _)| other.has_room())
        }
    }
}

impl Store for MemoryStore {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self.try_decide(batch) {
            Ok(verdicts) => Ok(verdicts),
            // On the heap: what is decided here is not to make room for it.
            Err(Moved) => Box::pin(self.decide_there(batch)).await,
        }
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self.try_look(batch) {
            Ok(verdicts) => Ok(verdicts),
            Err(Moved) => Box::pin(self.look_there(batch)).await,
        }
    }

    async fn reset(&self, keys: &[KeyHash]) -> Result<(), StoreError> {
        let forgotten: SmallVec<[_; 4]> =
            keys.iter().map(|key| Settlement::Reset { key: *key, charged: None }).collect();
        self.settle(&forgotten).await
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        match settlements.get(self.settle_here(settlements)..) {
            None | Some([]) => Ok(()),
            Some(rest) => Box::pin(self.settle_there(rest)).await,
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

fn random() -> [u8; 16] {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).expect("the system has random bytes");
    secret
}

/// More shards than cores, so that two cores seldom want the same one.
const MAX_SHARDS: usize = 64;

/// Shards fill unevenly; the larger they are, the less it shows. Below twice this there is one, and the bound is exact.
const KEYS_WORTH_A_SHARD: usize = 1024;

#[cfg(test)]
mod tests;
