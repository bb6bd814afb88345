//! All sessions that this process knows, shared by its cores.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use super::shard::Flag;
use super::shard::Session;
use super::shard::SessionShard;
use super::shard::local_hash;
use super::tenths::Origin;
use super::tenths::span_of;
use super::tenths::tenths_of;
use crate::clock::Timestamp;
use crate::decision::SessionChange;
use crate::decision::SignIn;
use crate::key::KeyHash;

/// Whose each session is: at most so many sessions as the settings say. When the table is full, the sessions whose last
/// use is the longest ago make way.
pub struct Sessions {
    shards: Box<[Padded<Mutex<SessionShard>>]>,
    origin: Origin,
    /// How many sessions there are, so that a look-up in an empty table takes no lock.
    count: AtomicUsize,
    /// The shard from which expired sessions are removed next.
    next_swept: AtomicUsize,
    /// Whether Redis has them too.
    is_shared: AtomicBool,
}

/// A value on cache lines of its own, so that cores at work on neighbouring shards do not slow each other down.
#[repr(align(128))]
struct Padded<T>(T);

/// A session, in full.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) struct KnownSession {
    pub(in crate::store) session: KeyHash,
    pub(in crate::store) account: KeyHash,
    pub(in crate::store) keep: Duration,
    pub(in crate::store) used: Timestamp,
}

impl Sessions {
    pub fn new(max_sessions: usize, now: Timestamp) -> Self {
        let wanted = (max_sessions / SESSIONS_WORTH_A_SHARD).clamp(1, MAX_SHARDS);
        // A power of two, so that a few bits of the hash choose the shard.
        let count = 1 << wanted.ilog2();
        let bounds = (0..count).map(|number| max_sessions / count + usize::from(number < max_sessions % count));
        Self {
            shards: bounds.map(|bound| Padded(Mutex::new(SessionShard::new(bound)))).collect(),
            origin: Origin::of(now),
            count: AtomicUsize::new(0),
            next_swept: AtomicUsize::new(0),
            is_shared: AtomicBool::new(false),
        }
    }

    /// Whether no session is known, so that no value of a request needs to be hashed.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// How many sessions are known. One whose time is over counts until it is removed.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whose this session is. This is a use of it: it is remembered from now on for as long as it was learned for.
    pub fn account(&self, session: KeyHash, now: Timestamp) -> Option<KeyHash> {
        if self.is_empty() {
            return None;
        }
        let (local, now) = (local_hash(session), self.origin.tenths(now));
        let used = self.change(local, |shard| shard.touch(session, local, now))?;
        Some(used.account)
    }

    /// What is known of a session. This is not a use of it.
    pub(in crate::store) fn find(&self, session: KeyHash, now: Timestamp) -> Option<KnownSession> {
        let local = local_hash(session);
        let found = self.shard(local).lock().peek(session, local, self.origin.tenths(now))?;
        Some(self.known(session, found))
    }

    /// Learns the sessions of a success, unless its request carried a session of another account: then it is not the
    /// account's own, and `false` is returned.
    pub(in crate::store) fn sign_in(&self, sign_in: &SignIn, now: Timestamp) -> bool {
        let SignIn { account, keep, learned, carried } = sign_in;
        let is_of_another = |session: &KeyHash| self.find(*session, now).is_some_and(|found| found.account != *account);
        if carried.iter().any(is_of_another) {
            return false;
        }
        for session in learned {
            self.learn(KnownSession { session: *session, account: *account, keep: *keep, used: now });
        }
        true
    }

    /// Applies a change that an answer has made.
    pub(in crate::store) fn apply(&self, change: SessionChange, now: Timestamp) {
        match change {
            SessionChange::Renew { old, new } => {
                if let Some(known) = self.find(old, now) {
                    self.learn(KnownSession { session: new, used: now, ..known });
                }
            }
            SessionChange::Forget(session) => drop(self.forget(session)),
        }
    }

    /// Learns a session that Redis does not have yet.
    fn learn(&self, known: KnownSession) {
        let added = if self.is_shared.load(Ordering::Relaxed) { Flag::Unsent as u32 } else { 0 };
        self.insert(known, |flags| flags | added);
    }

    pub(in crate::store) fn forget(&self, session: KeyHash) -> bool {
        let local = local_hash(session);
        self.change(local, |shard| shard.remove(session, local))
    }

    /// Removes sessions whose time is over, in a part of the table. To be called about once a second.
    pub(in crate::store) fn remove_expired(&self, now: Timestamp) {
        let number = self.next_swept.fetch_add(1, Ordering::Relaxed) % self.shards.len();
        let now = self.origin.tenths(now);
        self.change_shard(&self.shards[number].0, |shard| shard.remove_expired(now));
    }

    fn insert(&self, known: KnownSession, flags: impl FnOnce(u32) -> u32) {
        let KnownSession { session, account, keep, used } = known;
        let (local, used) = (local_hash(session), self.origin.tenths(used));
        let new = Session { account, keep: tenths_of(keep), used };
        self.change(local, |shard| shard.insert(session, local, new, flags));
    }

    fn known(&self, session: KeyHash, found: Session) -> KnownSession {
        let Session { account, keep, used } = found;
        KnownSession { session, account, keep: span_of(keep), used: self.origin.moment(used) }
    }

    /// Changes the shard of this hash, and counts.
    fn change<T>(&self, local: u128, change: impl FnOnce(&mut SessionShard) -> T) -> T {
        self.change_shard(self.shard(local), change)
    }

    fn change_shard<T>(&self, shard: &Mutex<SessionShard>, change: impl FnOnce(&mut SessionShard) -> T) -> T {
        let mut shard = shard.lock();
        let before = shard.len();
        let changed = change(&mut shard);
        match shard.len() {
            after if after > before => _ = self.count.fetch_add(after - before, Ordering::Relaxed),
            after if after < before => _ = self.count.fetch_sub(before - after, Ordering::Relaxed),
            _ => {}
        }
        changed
    }

    /// The shard of a hash, by bits that its index does not use.
    #[expect(clippy::cast_possible_truncation, reason = "a few bits are what is wanted")]
    fn shard(&self, local: u128) -> &Mutex<SessionShard> {
        let upper = (local >> 64) as usize;
        &self.shards[upper & (self.shards.len() - 1)].0
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("count", &self.count()).finish_non_exhaustive()
    }
}

/// More shards than cores, so that two cores seldom want the same one.
const MAX_SHARDS: usize = 64;

/// Shards fill unevenly, and larger ones less so. Below twice this number there is one shard, and the bound is exact.
const SESSIONS_WORTH_A_SHARD: usize = 1024;

#[cfg(test)]
mod tests;
