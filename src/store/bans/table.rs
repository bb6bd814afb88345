//! All bans that are known in this process, shared by its cores.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::BanObserver;
use super::ban::Ban;
use super::ban::BanId;
use super::ban::BanSubject;
use super::ban::Record;
use super::followed::Followed;
use super::networks::Networks;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::limit::Ladder;
use crate::limit::ladder::Rung;
use parking_lot::Mutex;
use parking_lot::RwLock;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The bans of a process, and what is remembered of those that are over.
pub struct Bans {
    clock: Clock,
    book: RwLock<Book>,
    /// How many there are of each kind: nobody waits for the lock where there is nothing to find.
    keys: AtomicUsize,
    networks: AtomicUsize,
    observer: OnceLock<Arc<dyn BanObserver>>,
    checking: Mutex<HashSet<BanId>>,
    pub(super) followed: Mutex<Followed>,
    /// Redis is to be asked.
    pub(super) due: Notify,
    /// Something was written or removed.
    changes: Notify,
}

/// There is no room for another ban by hand.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there are {MOST} bans, and no room for another")]
pub struct BanTableFull;

#[derive(Debug, Default)]
struct Book {
    entries: HashMap<BanId, Entry>,
    networks: Networks,
    /// When each is forgotten: those by limits make room where there is none, those by hand do not.
    by_limits: BTreeSet<(Timestamp, BanId)>,
    by_operator: BTreeSet<(Timestamp, BanId)>,
    /// Counts what was written and removed here.
    writes: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    record: Record,
    /// Redis does not know of it yet.
    untold: bool,
    /// At which write it became what it is.
    written: u64,
}

/// How many are remembered at most, by Redis as well: about 500 bytes each.
pub(in crate::store) const MOST: usize = 100_000;

impl Bans {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            book: RwLock::default(),
            keys: AtomicUsize::new(0),
            networks: AtomicUsize::new(0),
            observer: OnceLock::new(),
            checking: Mutex::default(),
            followed: Mutex::default(),
            due: Notify::new(),
            changes: Notify::new(),
        }
    }

    /// Whether there may be a banned key: if not, no request is to ask for its own.
    pub fn has_keys(&self) -> bool {
        self.keys.load(Ordering::Relaxed) > 0
    }

    /// For how long a key is still banned.
    pub fn left(&self, key: KeyHash) -> Option<Duration> {
        if !self.has_keys() {
            return None;
        }
        let until = self.book.read().entries.get(&BanId::of_key(key))?.record.ban.until;
        self.until(until)
    }

    /// The ban of an address, by itself or as part of a network, and for how long it still lasts: the longest of them.
    pub fn of_address(&self, address: IpAddr) -> Option<(BanId, Duration)> {
        if self.networks.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let (until, network) = self.book.read().networks.until(address)?;
        Some((BanId::of_address(network), self.until(until)?))
    }

    fn until(&self, until: Timestamp) -> Option<Duration> {
        let left = until.since(self.clock.now());
        (!left.is_zero()).then_some(left)
    }

    /// Every ban that lasts, the one that ends first first.
    pub fn list(&self) -> Vec<Ban> {
        let now = self.clock.now();
        let mut lasting: Vec<Ban> = self.book.read().lasting(now).map(|entry| entry.record.ban.clone()).collect();
        lasting.sort_by_key(|ban| (ban.until, ban.id));
        lasting
    }

    /// How many bans last.
    pub fn count(&self) -> usize {
        let now = self.clock.now();
        self.book.read().lasting(now).count()
    }

    pub fn find(&self, id: BanId) -> Option<Ban> {
        let now = self.clock.now();
        let book = self.book.read();
        book.entries.get(&id).map(|entry| &entry.record.ban).filter(|ban| ban.until > now).cloned()
    }

    /// From now on this is told of what is done here. The first one stays.
    pub fn observe(&self, observer: Arc<dyn BanObserver>) {
        drop(self.observer.set(observer));
    }

    pub(in crate::store) fn observer(&self) -> Option<&dyn BanObserver> {
        self.observer.get().map(|observer| &**observer)
    }

    /// Whether nobody looks into this yet: then the caller does, until [`Bans::release_check`].
    pub fn claim_check(&self, id: BanId) -> bool {
        self.checking.lock().insert(id)
    }

    pub fn release_check(&self, id: BanId) {
        self.checking.lock().remove(&id);
    }

    /// What the clock of bans shows.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The next step of a ladder, as this process knows it; and whether it was one: while a ban lasts it stays.
    pub(in crate::store) fn ban_by_limit(
        &self,
        subject: BanSubject,
        ladder: &Ladder,
        reason: &Arc<str>,
    ) -> (Record, bool) {
        let now = self.clock.now();
        let id = subject.id();
        let mut book = self.book.write();
        let before = book.entries.get(&id).map(|entry| &entry.record);
        if let Some(lasting) = before.filter(|record| record.ban.until > now) {
            return (lasting.clone(), false);
        }
        let rung = before.and_then(|record| {
            let step = NonZeroU32::new(record.step)?;
            Some(Rung { step, length: record.length, until: record.ban.until })
        });
        let Rung { step, length, until } = ladder.next(rung, now);
        let ban = Ban { id, subject, since: now, until, reason: Arc::clone(reason), by_operator: false };
        let record = Record { ban, step: step.get(), length };
        book.insert(record.clone(), true, now);
        self.publish(&book);
        (record, true)
    }

    /// A ban by hand, which replaces the one there was and counts as no step.
    pub(in crate::store) fn ban_by_operator(
        &self,
        subject: BanSubject,
        span: Duration,
        reason: Arc<str>,
    ) -> Result<Record, BanTableFull> {
        let now = self.clock.now();
        let id = subject.id();
        let mut book = self.book.write();
        let step = book.entries.get(&id).map_or(0, |entry| entry.record.step);
        let ban = Ban { id, subject, since: now, until: now + span, reason, by_operator: true };
        let record = Record { ban, step, length: span };
        if !book.insert(record.clone(), true, now) {
            return Err(BanTableFull);
        }
        self.publish(&book);
        Ok(record)
    }

    /// Keeps what another one decided: Redis, or the process before this one. What is known better here stays.
    pub(in crate::store) fn keep(&self, mut record: Record) {
        let now = self.clock.now();
        let mut book = self.book.write();
        if let Some(known) = book.entries.get(&record.ban.id) {
            record.learn(&known.record);
        }
        book.insert(record, false, now);
        self.publish(&book);
    }

    /// Ends a ban and forgets its steps.
    pub(in crate::store) fn lift(&self, id: BanId) -> Option<Ban> {
        let now = self.clock.now();
        let mut book = self.book.write();
        let removed = book.remove(id);
        self.publish(&book);
        removed.map(|entry| entry.record.ban).filter(|ban| ban.until > now)
    }

    /// Counts what changed so far, for [`Bans::only`] and whoever keeps a copy.
    pub(in crate::store) fn mark(&self) -> u64 {
        self.book.read().writes
    }

    /// Forgets what was not written since that mark, but what Redis was not told.
    pub(in crate::store) fn only(&self, since: u64) {
        let mut book = self.book.write();
        let stale = book.entries.iter().filter(|(_, entry)| entry.written <= since && !entry.untold);
        let gone: Vec<BanId> = stale.map(|(id, _)| *id).collect();
        for id in gone {
            book.remove(id);
        }
        self.publish(&book);
    }

    /// Redis knows nothing any more of what was written until that mark.
    pub(in crate::store) fn untell(&self, until: u64) {
        let mut book = self.book.write();
        book.entries.values_mut().filter(|entry| entry.written <= until).for_each(|entry| entry.untold = true);
    }

    /// Redis knows of it now.
    pub(in crate::store) fn told(&self, id: BanId) {
        if let Some(entry) = self.book.write().entries.get_mut(&id) {
            entry.untold = false;
        }
    }

    pub(in crate::store) fn is_untold(&self, id: BanId) -> bool {
        self.book.read().entries.get(&id).is_some_and(|entry| entry.untold)
    }

    /// What lasts, and Redis does not know.
    pub(in crate::store) fn untold(&self) -> Vec<Record> {
        let now = self.clock.now();
        let book = self.book.read();
        book.lasting(now).filter(|entry| entry.untold).map(|entry| entry.record.clone()).collect()
    }

    /// Everything that has a say.
    pub(in crate::store) fn records(&self) -> Vec<Record> {
        self.records_since(0)
    }

    /// Everything that has a say and was written since that mark.
    pub(in crate::store) fn records_since(&self, mark: u64) -> Vec<Record> {
        let now = self.clock.now();
        let book = self.book.read();
        let records = book.entries.values().filter(|entry| entry.written > mark).map(|entry| &entry.record);
        records.filter(|record| record.expires() > now).cloned().collect()
    }

    /// Ends with the next change after it was first polled or enabled.
    pub(in crate::store) fn changed(&self) -> Notified<'_> {
        self.changes.notified()
    }

    /// Forgets what has no say any more.
    pub(in crate::store) fn sweep(&self) {
        let now = self.clock.now();
        let is_due = {
            let book = self.book.read();
            book.first().is_some_and(|(expires, _)| expires <= now)
        };
        if is_due {
            let mut book = self.book.write();
            book.sweep(now);
            self.publish(&book);
        }
    }

    fn publish(&self, book: &Book) {
        let networks = book.networks.len();
        self.networks.store(networks, Ordering::Relaxed);
        self.keys.store(book.entries.len() - networks, Ordering::Relaxed);
        self.changes.notify_waiters();
    }
}

impl Book {
    fn lasting(&self, now: Timestamp) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(move |entry| entry.record.ban.until > now)
    }

    /// `false`: there is no room for it, because all there are were made by hand.
    fn insert(&mut self, record: Record, untold: bool, now: Timestamp) -> bool {
        let id = record.ban.id;
        self.remove(id);
        if self.entries.len() >= MOST {
            self.sweep(now);
        }
        while self.entries.len() >= MOST {
            let Some((_, first)) = self.by_limits.first().copied() else { return false };
            self.remove(first);
        }
        if let BanSubject::Address(network) = record.ban.subject {
            self.networks.insert(network, record.ban.until);
        }
        let ends = if record.ban.by_operator { &mut self.by_operator } else { &mut self.by_limits };
        ends.insert((record.expires(), id));
        self.writes += 1;
        self.entries.insert(id, Entry { record, untold, written: self.writes });
        true
    }

    fn remove(&mut self, id: BanId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.writes += 1;
        if let BanSubject::Address(network) = entry.record.ban.subject {
            self.networks.remove(network);
        }
        let end = (entry.record.expires(), id);
        self.by_limits.remove(&end);
        self.by_operator.remove(&end);
        Some(entry)
    }

    fn first(&self) -> Option<(Timestamp, BanId)> {
        let firsts = [&self.by_limits, &self.by_operator].map(|ends| ends.first().copied());
        firsts.into_iter().flatten().min()
    }

    fn sweep(&mut self, now: Timestamp) {
        while let Some((expires, id)) = self.first()
            && expires <= now
        {
            self.remove(id);
        }
    }
}

impl fmt::Debug for Bans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, networks) = (self.keys.load(Ordering::Relaxed), self.networks.load(Ordering::Relaxed));
        f.debug_struct("Bans").field("keys", &keys).field("networks", &networks).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
