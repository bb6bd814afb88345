//! All bans that this process knows, shared by its cores.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::ban::{Ban, BanId, BanRecord, BanSubject};
use super::index::{BanEntry, BanIndex, MOST_BANS};
use crate::rules::key::KeyHash;
use crate::rules::limit::Ladder;
use crate::rules::limit::action::Rung;
use crate::store::bans::ban::BanObserver;
use crate::store::bans::sync::BanSyncState;
use crate::words::clock::{Clock, Timestamp};
use crate::words::signing::KeyRing;

/// The bans of a process that last, and those that are over but still count on the ladder of their limit.
pub struct Bans {
    clock: Clock,
    index: RwLock<BanIndex>,
    /// How many bans there are of each kind, so that a look-up in an empty table takes no lock.
    keys: AtomicUsize,
    networks: AtomicUsize,
    observer: OnceLock<Arc<dyn BanObserver>>,
    /// Bans that a task is checking with Redis.
    checking: Mutex<HashSet<BanId>>,
    pub(super) sync_state: Mutex<BanSyncState>,
    /// See [`Bans::resend`].
    pub(super) resending: tokio::sync::RwLock<()>,
    /// Wakes the task that asks Redis for changes.
    pub(super) sync_request: Notify,
    /// A ban was written or removed.
    changes: Notify,
}

/// Bans that have changed.
#[derive(Debug, Default)]
pub(in crate::store) struct ChangedBans {
    /// They were removed, and are not back.
    pub(in crate::store) removed: Vec<BanId>,
    pub(in crate::store) written: Vec<BanRecord>,
}

/// There is no room for another ban by an operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there are {MOST_BANS} bans, and no room for another")]
pub struct BanTableFull;

impl Bans {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            index: RwLock::default(),
            keys: AtomicUsize::new(0),
            networks: AtomicUsize::new(0),
            observer: OnceLock::new(),
            checking: Mutex::default(),
            sync_state: Mutex::default(),
            resending: tokio::sync::RwLock::default(),
            sync_request: Notify::new(),
            changes: Notify::new(),
        }
    }

    /// Whether any key may be banned: if not, a request need not look its own keys up.
    pub fn has_keys(&self) -> bool {
        self.keys.load(Ordering::Relaxed) > 0
    }

    /// For how long a key is still banned.
    pub fn left(&self, key: KeyHash) -> Option<Duration> {
        if !self.has_keys() {
            return None;
        }
        let until = self.index.read().entries.get(&BanId::of_key(key))?.record.ban.until;
        self.until(until)
    }

    /// The longest ban of an address, itself or as part of a network, and for how long it still lasts.
    pub fn of_address(&self, address: IpAddr) -> Option<(BanId, Duration)> {
        if self.networks.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let (until, network) = self.index.read().networks.until(address)?;
        Some((BanId::of_address(network), self.until(until)?))
    }

    fn until(&self, until: Timestamp) -> Option<Duration> {
        let left = until.since(self.clock.now());
        (!left.is_zero()).then_some(left)
    }

    /// Every ban that lasts, in the order in which they end.
    pub fn list(&self) -> Vec<Ban> {
        let now = self.clock.now();
        let mut lasting: Vec<Ban> = self.index.read().lasting(now).map(|entry| entry.record.ban.clone()).collect();
        lasting.sort_by_key(|ban| (ban.until, ban.id));
        lasting
    }

    /// How many bans last.
    pub fn count(&self) -> usize {
        let now = self.clock.now();
        self.index.read().lasting(now).count()
    }

    pub fn find(&self, id: BanId) -> Option<Ban> {
        let now = self.clock.now();
        let index = self.index.read();
        index.entries.get(&id).map(|entry| &entry.record.ban).filter(|ban| ban.until > now).cloned()
    }

    /// Calls `observer` for every ban that this process sets or lifts from now on. Only the first observer is kept.
    pub fn observe(&self, observer: Arc<dyn BanObserver>) {
        drop(self.observer.set(observer));
    }

    pub(in crate::store) fn observer(&self) -> Option<&dyn BanObserver> {
        self.observer.get().map(|observer| &**observer)
    }

    /// Whether the caller is the only one to check this ban; it then calls [`Bans::release_check`] at the end.
    pub fn claim_check(&self, id: BanId) -> bool {
        self.checking.lock().insert(id)
    }

    pub fn release_check(&self, id: BanId) {
        self.checking.lock().remove(&id);
    }

    /// The time by the clock of the bans.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Bans for the next step of a ladder, as far as this process knows. `false`: a ban lasts already and stays as it
    /// is.
    pub(in crate::store) fn ban_by_limit(
        &self,
        subject: BanSubject,
        ladder: &Ladder,
        reason: &Arc<str>,
    ) -> (BanRecord, bool) {
        let now = self.clock.now();
        let id = subject.id();
        let mut index = self.index.write();
        let before = index.entries.get(&id).map(|entry| &entry.record);
        if let Some(lasting) = before.filter(|record| record.ban.until > now) {
            return (lasting.clone(), false);
        }
        let rung = before.and_then(|record| {
            let step = NonZeroU32::new(record.step)?;
            Some(Rung { step, length: record.length, until: record.ban.until })
        });
        let Rung { step, length, until } = ladder.next(rung, now);
        let ban = Ban { id, subject, since: now, until, reason: Arc::clone(reason), by_operator: false };
        let record = BanRecord::new(ban, step.get(), length);
        index.insert(record.clone(), true, now);
        self.publish(&index);
        (record, true)
    }

    /// Bans for an operator. This replaces the ban there was, and is not a step of a ladder.
    pub(in crate::store) fn ban_by_operator(
        &self,
        subject: BanSubject,
        span: Duration,
        reason: Arc<str>,
    ) -> Result<BanRecord, BanTableFull> {
        let now = self.clock.now();
        let id = subject.id();
        let mut index = self.index.write();
        let step = index.entries.get(&id).map_or(0, |entry| entry.record.step);
        let ban = Ban { id, subject, since: now, until: now + span, reason, by_operator: true };
        let record = BanRecord::new(ban, step, span);
        if !index.insert(record.clone(), true, now) {
            return Err(BanTableFull);
        }
        self.publish(&index);
        Ok(record)
    }

    /// Whether there is room for the bans of these ids by an operator, beside the others by operators. Bans by limits make room.
    pub(in crate::store) fn has_room_for(&self, ids: impl Iterator<Item = BanId>) -> bool {
        let mut index = self.index.write();
        index.remove_expired(self.clock.now());
        index.has_room_for(ids)
    }

    /// Writes a ban that Redis or another process has decided, and keeps what this process knows better about it.
    pub(in crate::store) fn insert(&self, mut record: BanRecord) {
        let now = self.clock.now();
        let mut index = self.index.write();
        if let Some(known) = index.entries.get(&record.ban.id) {
            record.merge_known(&known.record);
        }
        index.insert(record, false, now);
        self.publish(&index);
    }

    /// Keeps the subject of a ban that this process knows better than the message about it.
    pub(in crate::store) fn describe(&self, ban: &Ban) {
        if let Some(entry) = self.index.write().entries.get_mut(&ban.id) {
            entry.record.describe(&ban.subject);
        }
    }

    /// Decrypts the addresses in keys that could not be decrypted before.
    pub(in crate::store) fn open_sealed(&self, ring: &KeyRing) {
        let sealed = |entry: &&BanEntry| entry.record.sealed().is_some();
        let mut records: Vec<BanRecord> =
            self.index.read().entries.values().filter(sealed).map(|entry| entry.record.clone()).collect();
        for record in &mut records {
            record.open(ring);
        }
        records.retain(|record| record.sealed().is_none());
        if records.is_empty() {
            return;
        }
        let mut index = self.index.write();
        for record in records {
            if let Some(entry) = index.entries.get_mut(&record.ban.id) {
                entry.record.describe(&record.ban.subject);
            }
        }
    }

    /// Ends a ban and resets its ladder.
    pub(in crate::store) fn lift(&self, id: BanId) -> Option<Ban> {
        let now = self.clock.now();
        let mut index = self.index.write();
        let removed = index.remove(id);
        self.publish(&index);
        removed.map(|entry| entry.record.ban).filter(|ban| ban.until > now)
    }

    /// How many changes there were so far: a mark for [`Bans::remove_unchanged_since`] and [`Bans::records_since`].
    pub(in crate::store) fn mark(&self) -> u64 {
        self.index.read().writes
    }

    /// Removes every ban that was not written since that mark, except those that Redis does not have yet.
    pub(in crate::store) fn remove_unchanged_since(&self, mark: u64) {
        let mut index = self.index.write();
        let stale = index.entries.iter().filter(|(_, entry)| entry.written <= mark && !entry.is_unsent);
        let stale: Vec<BanId> = stale.map(|(id, _)| *id).collect();
        for id in stale {
            index.remove(id);
        }
        self.publish(&index);
    }

    /// Redis has lost every ban that was written until that mark: all of them are to be sent again.
    pub(in crate::store) fn mark_unsent_until(&self, mark: u64) {
        let mut index = self.index.write();
        index.entries.values_mut().filter(|entry| entry.written <= mark).for_each(|entry| entry.is_unsent = true);
    }

    /// Redis has this ban now.
    pub(in crate::store) fn mark_sent(&self, id: BanId) {
        if let Some(entry) = self.index.write().entries.get_mut(&id) {
            entry.is_unsent = false;
        }
    }

    pub(in crate::store) fn is_unsent(&self, id: BanId) -> bool {
        self.index.read().entries.get(&id).is_some_and(|entry| entry.is_unsent)
    }

    /// The bans that last and that Redis does not have yet.
    pub(in crate::store) fn unsent(&self) -> Vec<BanRecord> {
        let now = self.clock.now();
        let index = self.index.read();
        index.lasting(now).filter(|entry| entry.is_unsent).map(|entry| entry.record.clone()).collect()
    }

    /// Every ban that lasts or still counts on its ladder.
    pub(in crate::store) fn records(&self) -> Vec<BanRecord> {
        self.records_since(0)
    }

    /// Every ban of [`records`](Self::records) that was written since that mark.
    pub(in crate::store) fn records_since(&self, mark: u64) -> Vec<BanRecord> {
        self.written_since(mark, &self.index.read())
    }

    /// The changes since that mark; `None`: there are too many.
    pub(in crate::store) fn changed_since(&self, mark: u64) -> Option<ChangedBans> {
        let index = self.index.read();
        if index.writes == mark {
            return Some(ChangedBans::default());
        }
        let removed = index.removed_since(mark)?;
        Some(ChangedBans { removed, written: self.written_since(mark, &index) })
    }

    fn written_since(&self, mark: u64, index: &BanIndex) -> Vec<BanRecord> {
        let now = self.clock.now();
        let records = index.entries.values().filter(|entry| entry.written > mark).map(|entry| &entry.record);
        records.filter(|record| record.expires() > now).cloned().collect()
    }

    /// Waits for the next change after the future was first polled or enabled.
    pub(in crate::store) fn changed(&self) -> Notified<'_> {
        self.changes.notified()
    }

    /// Removes every ban that neither lasts nor counts on its ladder any more.
    pub(in crate::store) fn remove_expired(&self) {
        let now = self.clock.now();
        let is_due = {
            let index = self.index.read();
            index.first().is_some_and(|(expires, _)| expires <= now)
        };
        if is_due {
            let mut index = self.index.write();
            index.remove_expired(now);
            self.publish(&index);
        }
    }

    fn publish(&self, index: &BanIndex) {
        let networks = index.networks.len();
        self.networks.store(networks, Ordering::Relaxed);
        self.keys.store(index.entries.len() - networks, Ordering::Relaxed);
        self.changes.notify_waiters();
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
