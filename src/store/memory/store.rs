//! The memory store.

use crate::store::random::random_bytes;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::known_clients::KnownClientTable;
use super::settings::Settings;
use super::shard::Shard;
use crate::clock::Clock;
use crate::decision::Batch;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::key::KeyHash;
use crate::key::KeyHasher;
use crate::store::Bans;
use crate::store::LiveKeyRing;
use crate::store::Sessions;
use crate::store::Store;
use crate::store::StoreError;
use crate::store::handover::CountsMoved;
use crate::store::handover::Handover;
use crate::store::unsettled::Unsettled;

/// The memory store.
///
/// A key lives in one of up to 64 shards, each behind its own lock. A batch holds the locks of all shards it touches,
/// taken in ascending order, from its first look until it is charged.
///
/// When another process takes over, the counts move there, and every shard says so: a caller that gets [`CountsMoved`]
/// asks the other process instead.
pub struct MemoryStore {
    pub(super) clock: Clock,
    pub(super) shards: Box<[Padded<Mutex<Shard>>]>,
    pub(super) key_ring: Arc<LiveKeyRing>,
    pub(super) known_clients: KnownClientTable,
    pub(super) unsettled: Unsettled,
    pub(super) secret: [u8; 16],
    pub(super) bans: Arc<Bans>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) handover: Handover,
}

/// A value on cache lines of its own, so that cores at work on neighbouring shards do not slow each other down.
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

/// The locked shards of one batch, by number.
pub(super) type LockedShards<'s> = SmallVec<[(usize, MutexGuard<'s, Shard>); 4]>;

impl MemoryStore {
    pub fn new(settings: &Settings, clock: Clock) -> Self {
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
            handover: Handover::default(),
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

    /// Which process has the counts.
    pub(in crate::store) fn handover(&self) -> &Handover {
        &self.handover
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

impl Store for MemoryStore {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self.collect_decided(batch) {
            Ok(verdicts) => Ok(verdicts),
            // Boxed, so that the future of a decision in this process stays small.
            Err(CountsMoved) => Box::pin(self.decide_at_successor(batch)).await,
        }
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self.try_look(batch) {
            Ok(verdicts) => Ok(verdicts),
            Err(CountsMoved) => Box::pin(self.look_at_successor(batch)).await,
        }
    }

    async fn reset(&self, keys: &[KeyHash]) -> Result<(), StoreError> {
        let resets: SmallVec<[_; 4]> = keys.iter().map(|key| Settlement::Reset(*key)).collect();
        self.settle(&resets).await
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        match settlements.get(self.settle_here(settlements)..) {
            None | Some([]) => Ok(()),
            Some(rest) => Box::pin(self.settle_at_successor(rest)).await,
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

/// More shards than cores, so that two cores seldom want the same one.
const MAX_SHARDS: usize = 64;

/// Shards fill unevenly, and larger ones less so. Below twice this number there is one shard, and the bound is exact.
const KEYS_WORTH_A_SHARD: usize = 1024;
