//! All sessions that this process knows, shared by its cores.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::{fmt, mem};

use parking_lot::Mutex;

use super::shard::{Flag, Session, SessionShard, local_hash};
use crate::rules::decision::{SessionChange, SignIn};
use crate::rules::key::KeyHash;
use crate::store::sessions::codec::{KnownSession, Origin, span_of, tenths_of};
use crate::store::sessions::sync::SessionSync;
use crate::words::clock::Timestamp;

/// More shards than cores, so that two cores seldom want the same one.
const MAX_SHARDS: usize = 64;

/// Shards fill unevenly, and larger ones less so. Below twice this number there is one shard, and the bound is exact.
const SESSIONS_WORTH_A_SHARD: usize = 1024;

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
    pub(super) is_shared: AtomicBool,
    /// Whether there may be sessions that Redis does not have.
    pub(super) has_unsent: AtomicBool,
    /// How often sessions changed, or were used so that it is worth being told on.
    changes: AtomicU64,
    pub(super) sync: SessionSync,
    most: usize,
}

/// A value on cache lines of its own, so that cores at work on neighbouring shards do not slow each other down.
#[repr(align(128))]
struct Padded<T>(T);

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
            has_unsent: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            sync: SessionSync::default(),
            most: max_sessions,
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
        if used.is_due {
            self.tell(session);
        }
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
        let is_own = !self.is_of_another(sign_in, now);
        if is_own {
            KnownSession::learned(sign_in, now).for_each(|known| self.learn(known));
        }
        is_own
    }

    /// Whether the request carried a session of another account.
    pub(in crate::store) fn is_of_another(&self, sign_in: &SignIn, now: Timestamp) -> bool {
        let mut found = sign_in.carried.iter().filter_map(|session| self.find(*session, now));
        found.any(|known| known.account != sign_in.account)
    }

    /// Applies a change that an answer has made.
    pub(in crate::store) fn apply(&self, change: SessionChange, now: Timestamp) {
        match change {
            SessionChange::Renew { old, new } => {
                if let Some(known) = self.find(old, now) {
                    self.learn(KnownSession { session: new, used: now, ..known });
                }
            }
            SessionChange::Forget(session) => self.forget(session),
            SessionChange::Learn { session, account, keep } => {
                let new = KnownSession { session, account, keep, used: now };
                self.learn(self.find(session, now).map_or(new, |known| KnownSession { used: now, ..known }));
            }
        }
    }

    /// Learns a session that Redis does not have yet.
    fn learn(&self, known: KnownSession) {
        if self.is_shared.load(Ordering::Relaxed) {
            self.keep_after_all(known.session);
            self.insert(known, |flags| flags | Flag::Unsent as u32);
            self.has_unsent.store(true, Ordering::Release);
        } else {
            self.insert(known, |flags| flags);
        }
    }

    /// Takes in a session that Redis has. If Redis is still to be sent what this process knows of it, the later use holds.
    pub(super) fn insert_shared(&self, known: KnownSession) {
        let local = local_hash(known.session);
        let (flags, used) = self.shard(local).lock().flags(known.session, local);
        let is_later = self.origin.tenths(known.used) > used;
        let is_sent = flags & Flag::Unsent as u32 == 0;
        if is_sent || is_later {
            self.insert(known, |_| Flag::Loaded as u32);
        } else {
            self.change(local, |shard| {
                shard.change_flags(known.session, local, |_, flags| flags | Flag::Loaded as u32);
            });
        }
    }

    pub(super) fn forget(&self, session: KeyHash) {
        let local = local_hash(session);
        if self.change(local, |shard| shard.remove(session, local)) {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes a use on another gateway.
    pub(super) fn use_elsewhere(&self, session: KeyHash, used: Timestamp) {
        let (local, used) = (local_hash(session), self.origin.tenths(used));
        self.change(local, |shard| shard.use_elsewhere(session, local, used));
    }

    /// Tells on a use of a session.
    fn tell(&self, session: KeyHash) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        if self.is_shared.load(Ordering::Relaxed) {
            self.note_use(session);
        }
    }

    /// How many sessions there may be.
    pub(in crate::store) fn most(&self) -> usize {
        self.most
    }

    /// How often sessions changed so far, uses that were told on included.
    pub(in crate::store) fn mark(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Notes from now on which sessions change, for one caller of [`Sessions::take_changed`].
    pub(in crate::store) fn watch_changes(&self) {
        self.shards.iter().for_each(|shard| shard.0.lock().changed.watch());
    }

    /// The sessions that have changed since the last call, as they are now; `None`: too many have changed, or they were
    /// not watched.
    pub(in crate::store) fn take_changed(&self, now: Timestamp) -> Option<Vec<(KeyHash, Option<KnownSession>)>> {
        let mut changed = Vec::new();
        for Padded(shard) in &self.shards {
            changed.extend(shard.lock().changed.take()?);
        }
        changed.sort_unstable();
        changed.dedup();
        Some(changed.into_iter().map(|session| (session, self.find(session, now))).collect())
    }

    /// Every session whose time is not over. In between, others can look at the sessions.
    pub(in crate::store) fn lasting(&self, now: Timestamp) -> impl Iterator<Item = KnownSession> {
        let tenths = self.origin.tenths(now);
        self.shards.iter().flat_map(move |Padded(shard)| {
            let shard = shard.lock();
            let lasting = shard.oldest_first(tenths).map(|(session, found, _)| self.known(session, found));
            lasting.collect::<Vec<_>>()
        })
    }

    /// Calls `each` for every session whose time is not over, with its flags; in each shard those first whose last use
    /// is the longest ago.
    pub(in crate::store) fn each_lasting(&self, now: Timestamp, mut each: impl FnMut(KnownSession, u32)) {
        let tenths = self.origin.tenths(now);
        for Padded(shard) in &self.shards {
            shard
                .lock()
                .oldest_first(tenths)
                .for_each(|(session, found, flags)| each(self.known(session, found), flags));
        }
    }

    /// Forgets all sessions.
    pub(in crate::store) fn clear(&self) {
        self.each_shard(SessionShard::clear);
    }

    /// Takes over a session from another process.
    pub(in crate::store) fn restore(&self, known: KnownSession) {
        self.insert(known, |flags| flags);
    }

    pub(super) fn each_shard(&self, mut change: impl FnMut(&mut SessionShard)) {
        self.shards.iter().for_each(|shard| self.change_shard(&shard.0, &mut change));
    }

    /// Removes sessions whose time is over, in a part of the table. To be called about once a second.
    pub(in crate::store) fn remove_expired(&self, now: Timestamp) {
        let number = self.next_swept.fetch_add(1, Ordering::Relaxed) % self.shards.len();
        let now = self.origin.tenths(now);
        self.change_shard(&self.shards[number].0, |shard| shard.remove_expired(now));
    }

    pub(super) fn insert(&self, known: KnownSession, flags: impl FnOnce(u32) -> u32) {
        let KnownSession { session, account, keep, used } = known;
        let (local, used) = (local_hash(session), self.origin.tenths(used));
        let new = Session { account, keep: tenths_of(keep), used };
        self.change(local, |shard| shard.insert(session, local, new, flags));
        // Afterwards, so that whoever sees the number finds the change.
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn known(&self, session: KeyHash, found: Session) -> KnownSession {
        let Session { account, keep, used } = found;
        KnownSession { session, account, keep: span_of(keep), used: self.origin.moment(used) }
    }

    /// Changes the shard of this hash, and counts.
    pub(super) fn change<T>(&self, local: u128, change: impl FnOnce(&mut SessionShard) -> T) -> T {
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

// Which sessions have changed, for the snapshot on disk.

/// So many may have changed, however few sessions there are.
const ALWAYS_NOTED: usize = 256;

/// The sessions of a shard that have changed since they were last taken. Nothing is noted until somebody watches.
#[derive(Debug, Default)]
pub(super) enum ChangedSessions {
    #[default]
    Unwatched,
    Some(Vec<KeyHash>),
    /// More than it is worth to tell one by one.
    TooMany,
}

impl ChangedSessions {
    /// Notes what changes from now on.
    pub(super) fn watch(&mut self) {
        *self = Self::Some(Vec::new());
    }

    /// Notes a change among so many sessions.
    pub(super) fn note(&mut self, session: KeyHash, of: usize) {
        match self {
            Self::Some(changed) if changed.len() < of + ALWAYS_NOTED => changed.push(session),
            Self::Some(_) => *self = Self::TooMany,
            Self::Unwatched | Self::TooMany => {}
        }
    }

    /// Notes that all sessions have changed.
    pub(super) fn note_all(&mut self) {
        if let Self::Some(_) = self {
            *self = Self::TooMany;
        }
    }

    /// What has changed since the last call, each at least once; `None`: too much, or nobody watched.
    pub(super) fn take(&mut self) -> Option<Vec<KeyHash>> {
        match self {
            Self::Some(changed) => Some(mem::take(changed)),
            Self::Unwatched | Self::TooMany => None,
        }
    }
}

#[cfg(test)]
mod tests;
