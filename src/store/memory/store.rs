//! The memory store.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use smallvec::SmallVec;

use super::known_clients::KnownClientTable;
use super::shard::Shard;
use crate::rules::decision::batch::{Charged, Items};
use crate::rules::decision::{Batch, Charge, Settlement, Verdict, Verdicts};
use crate::rules::key::{KeyHash, KeyHasher};
use crate::rules::limit::Rule;
use crate::store::key_ring::random_bytes;
use crate::store::unsettled::Unsettled;
use crate::store::{Bans, LiveKeyRing, Sessions, Store, StoreError};
use crate::words::clock::{Clock, Timestamp};

/// More shards than cores, so that two cores seldom want the same one.
const MAX_SHARDS: usize = 64;

/// Shards fill unevenly, and larger ones less so. Below twice this number there is one shard, and the bound is exact.
const KEYS_WORTH_A_SHARD: usize = 1024;

/// The memory store.
///
/// A key lives in one of up to 64 shards, each behind its own lock. A batch holds the locks of all shards it touches,
/// taken in ascending order, from its first look until it is charged.
///
/// When another process takes over, the counts move there, and every shard says so: [`CountsMoved`]. Then a
/// [`MovableStore`](crate::store::MovableStore), which stands around this one, asks the other process instead.
pub struct MemoryStore {
    pub(super) clock: Clock,
    pub(super) shards: Box<[Padded<Mutex<Shard>>]>,
    pub(super) key_ring: Arc<LiveKeyRing>,
    pub(super) known_clients: KnownClientTable,
    pub(super) unsettled: Unsettled,
    pub(super) secret: [u8; 16],
    pub(super) bans: Arc<Bans>,
    pub(super) sessions: Arc<Sessions>,
    /// Whether the counts have moved to another process, for what is not behind the lock of a shard.
    has_moved: RwLock<bool>,
}

/// The counts are in another process, or about to move there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) struct CountsMoved;

/// A value on cache lines of its own, so that cores at work on neighbouring shards do not slow each other down.
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

/// The locked shards of one batch, by number.
pub(super) type LockedShards<'s> = SmallVec<[(usize, MutexGuard<'s, Shard>); 4]>;

/// Counts that never move to another process.
impl Store for MemoryStore {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        Ok(self.decide_now(batch))
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        Ok(self.look_now(batch))
    }

    async fn reset(&self, keys: &[KeyHash]) -> Result<(), StoreError> {
        for key in keys {
            self.reset_now(*key, None);
        }
        Ok(())
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        for settlement in settlements {
            self.settle_now(settlement);
        }
        Ok(())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

// The copy of the counts of a shared store in this process. It never moves to another process.

impl MemoryStore {
    pub fn new(settings: &MemorySettings, clock: Clock) -> Self {
        let wanted = (settings.max_keys / KEYS_WORTH_A_SHARD).clamp(1, MAX_SHARDS);
        // A power of two, so that a few bits of the hash choose the shard.
        let count = 1 << wanted.ilog2();
        let bounds =
            (0..count).map(|number| settings.max_keys / count + usize::from(number < settings.max_keys % count));
        Self {
            key_ring: Arc::new(LiveKeyRing::new(clock.now())),
            shards: bounds.map(|bound| Padded(Mutex::new(Shard::new(bound)))).collect(),
            known_clients: KnownClientTable::new(settings.max_keys),
            unsettled: Unsettled::default(),
            secret: random_bytes(),
            bans: Arc::new(Bans::new(clock.clone())),
            sessions: Arc::new(Sessions::new(settings.max_sessions, clock.now())),
            has_moved: RwLock::new(false),
            clock,
        }
    }

    /// The keys that the gateway signs with.
    pub fn key_ring(&self) -> &Arc<LiveKeyRing> {
        &self.key_ring
    }

    /// Hashes keys for this store.
    pub fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.secret)
    }

    /// The bans that this process knows.
    pub fn bans(&self) -> &Arc<Bans> {
        &self.bans
    }

    /// The sessions that this process knows.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// How many keys are remembered. An expired key counts until another key takes its place.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.lock().len()).sum()
    }

    /// How many new keys found no room so far, because every key that is remembered denies requests. Theirs are denied too.
    pub fn turned_away(&self) -> u64 {
        self.shards.iter().map(|shard| shard.0.lock().turned_away).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The clock that decides.
    pub(in crate::store) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The reservations that wait for their outcome, including those of a shared store in front of this one.
    pub(in crate::store) fn unsettled(&self) -> &Unsettled {
        &self.unsettled
    }

    /// Keeps the counts from moving while the guard is held.
    pub(in crate::store) fn here(&self) -> Result<RwLockReadGuard<'_, bool>, CountsMoved> {
        let has_moved = self.has_moved.read();
        if *has_moved { Err(CountsMoved) } else { Ok(has_moved) }
    }

    /// Whether the counts have moved, for what is not behind the lock of a shard.
    pub(in crate::store) fn set_moved(&self, has_moved: bool) {
        *self.has_moved.write() = has_moved;
    }

    /// Whether the counts have moved, for all keys.
    pub(in crate::store) fn set_keys_moved(&self, has_moved: bool) {
        self.shards.iter().for_each(|shard| shard.0.lock().has_moved = has_moved);
    }

    /// Locks the shard of a key.
    pub(super) fn shard(&self, key: KeyHash) -> Result<MutexGuard<'_, Shard>, CountsMoved> {
        self.lock_shard(self.shard_of(key))
    }

    fn lock_shard(&self, number: usize) -> Result<MutexGuard<'_, Shard>, CountsMoved> {
        let shard = self.shards[number].0.lock();
        if shard.has_moved { Err(CountsMoved) } else { Ok(shard) }
    }

    /// The number of the shard of a key, from bits of the hash that the index of the shard does not use.
    #[expect(clippy::cast_possible_truncation, reason = "a few bits are what is wanted")]
    pub(super) fn shard_of(&self, key: KeyHash) -> usize {
        let upper = (key.0 >> 64) as usize;
        upper & (self.shards.len() - 1)
    }

    /// Locks all shards of a batch, in ascending order.
    pub(super) fn lock(&self, batch: &Batch<'_>) -> Result<LockedShards<'_>, CountsMoved> {
        let mut numbers: SmallVec<[usize; 8]> = SmallVec::new();
        for charge in &batch.charges {
            numbers.push(self.shard_of(charge.key));
        }
        numbers.sort_unstable();
        numbers.dedup();
        let mut locked = LockedShards::new();
        for number in numbers {
            locked.push((number, self.lock_shard(number)?));
        }
        Ok(locked)
    }
}

impl MemoryStore {
    pub(in crate::store) fn decide_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        expect_here(self.collect_decided(batch))
    }

    pub(in crate::store) fn look_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        expect_here(self.try_look(batch))
    }

    /// Where a key stands.
    pub(in crate::store) fn look_at(&self, charge: &Charge<'_>) -> Verdict {
        expect_here(self.try_look_at(charge))
    }

    /// Whether the client is known; `false` where no charge depends on it.
    pub(in crate::store) fn is_known(&self, batch: &Batch<'_>) -> bool {
        expect_here(self.try_is_known(batch))
    }

    /// Decides a batch that another store has denied: charges only attempts and shadow limits.
    pub(in crate::store) fn deny_now(&self, batch: &Batch<'_>) -> Vec<Verdict> {
        let mut verdicts = Verdicts::new();
        expect_here(self.decide_all(batch, false, &mut verdicts));
        verdicts.into_vec()
    }

    pub(in crate::store) fn settle_now(&self, settlement: &Settlement<'_>) {
        expect_here(self.try_settle(settlement));
    }

    /// Gives back one slot.
    pub(in crate::store) fn release(&self, key: KeyHash) {
        expect_here(self.try_release(key));
    }

    pub(in crate::store) fn take_back(&self, key: KeyHash, rule: &Rule, charged: &Charged) {
        expect_here(self.try_take_back(key, rule, charged));
    }

    pub(in crate::store) fn charge_now(&self, key: KeyHash, rule: &Rule, items: &Items) {
        expect_here(self.try_charge(key, rule, items));
    }

    pub(in crate::store) fn reset_now(&self, key: KeyHash, until: Option<Timestamp>) {
        expect_here(self.try_reset(key, until));
    }

    /// Charges what another store has charged, whether or not there is room. `charged` returns for a place in the batch
    /// when that was. A charge is skipped if its shard has no room for the key.
    pub(in crate::store) fn mirror(&self, batch: &Batch<'_>, charged: impl Fn(usize) -> Option<Timestamp>) {
        let all = batch.charges.iter().enumerate();
        for (charge, now) in all.filter_map(|(place, charge)| Some((charge, charged(place)?))) {
            let mut shard = expect_here(self.shard(charge.key));
            let known = shard.find(charge.key);
            if let Some(place) = known.or_else(|| shard.admit(charge.key, charge.rule, batch, now).ok()) {
                shard.charge(place, charge.rule, &charge.items, now);
            }
            if known.is_none() {
                shard.remove_expired(now, 1);
            }
        }
    }
}

/// Unwraps a result of counts that never move.
pub(super) fn expect_here<T>(result: Result<T, CountsMoved>) -> T {
    result.expect("only the counts of a gateway without a shared store move")
}

// The `store.memory` section.

/// The `store.memory` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemorySettings {
    pub max_keys: usize,
    pub max_sessions: usize,
    /// The file that keeps what has to survive a restart; `None`: it is lost with the process.
    pub snapshot: Option<PathBuf>,
}

/// Where the configuration leaves them out.
impl MemorySettings {
    pub const MAX_KEYS: usize = 1_000_000;
    pub const MAX_SESSIONS: usize = 1_000_000;
}
