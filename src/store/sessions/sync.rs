//! How the table of sessions follows the sessions in Redis.

use std::mem;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::shard::{Flag, local_hash};
use super::table::Sessions;
use crate::rules::key::KeyHash;
use crate::store::sessions::codec::{KnownSession, SessionMessage, SessionRecord};
use crate::words::clock::Timestamp;

/// How many uses and forgotten sessions wait at most.
const MOST_WAITING: usize = 100_000;

/// How many messages are kept while sessions are loaded. More than that, and changes are asked for again.
const MOST_DURING_LOAD: usize = 10_000;

/// A page of sessions that Redis has.
#[derive(Debug)]
pub(in crate::store) struct SessionPage {
    /// The version at which it was read.
    pub(in crate::store) version: SessionVersion,
    pub(in crate::store) records: Vec<SessionRecord>,
}

impl Sessions {
    /// Redis has these sessions too from now on.
    pub(in crate::store) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Applies a message of the channel about sessions. One that is none is ignored.
    pub(in crate::store) fn apply_message(&self, message: &[u8], now: Timestamp) {
        if let Some(message) = SessionMessage::read(message) {
            self.receive(message, now);
        }
    }

    /// Applies a message. Messages arrive in the order of the changes; a change that is known already is not applied
    /// again. Requests a sync where a change is missing.
    fn receive(&self, message: SessionMessage, now: Timestamp) {
        let mut state = self.sync.state.lock();
        if message.is_change && state.version.is_some_and(|known| known.follows(message.version)) {
            return;
        }
        self.apply_records(&message.records, now);
        if !state.advance(&message) {
            self.request_sync();
        }
        if let Some(kept) = &mut state.during_load {
            if kept.len() < MOST_DURING_LOAD {
                kept.push(message);
            } else {
                self.request_sync();
            }
        }
    }

    /// Redis has learned these sessions at this version.
    pub(in crate::store) fn receive_learned(&self, version: SessionVersion, sessions: &[KnownSession]) {
        let state = self.sync.state.lock();
        // Otherwise its message was faster than the answer, and perhaps a later one too.
        let is_new = state.version.is_none_or(|known| !known.follows(version));
        for known in sessions {
            if is_new {
                self.insert(*known, |_| Flag::Loaded as u32);
            } else {
                self.mark_sent(known);
            }
        }
    }

    /// Begins to load sessions from Redis: all of them, or what has changed.
    pub(in crate::store) fn begin_load(&self, is_whole: bool) {
        if is_whole {
            self.each_shard(|shard| shard.change_all_flags(|flags| flags & !(Flag::Loaded as u32)));
        }
        self.sync.state.lock().during_load = Some(Vec::new());
    }

    /// Takes in a page.
    pub(in crate::store) fn load(&self, page: &SessionPage, now: Timestamp) {
        let mut state = self.sync.state.lock();
        self.apply_records(&page.records, now);
        if let Some(kept) = &mut state.during_load {
            kept.retain(|message| message.version.stamp > page.version.stamp);
            for message in kept {
                self.apply_records(&message.records, now);
            }
        }
    }

    /// Every page was loaded; the last one was read at this version. `is_whole`: sessions that were in no page are
    /// forgotten, except those that Redis is to be sent.
    pub(in crate::store) fn end_load(&self, version: Option<SessionVersion>, is_whole: bool) {
        if is_whole {
            let stays = Flag::Loaded as u32 | Flag::Unsent as u32;
            self.each_shard(|shard| shard.retain(|flags| flags & stays != 0));
        }
        let mut state = self.sync.state.lock();
        state.version = version;
        for message in state.during_load.take().unwrap_or_default() {
            if !state.advance(&message) {
                self.request_sync();
            }
        }
    }

    pub(in crate::store) fn version(&self) -> Option<SessionVersion> {
        self.sync.state.lock().version
    }

    /// Redis has lost all sessions: they are to be sent again.
    pub(in crate::store) fn mark_all_unsent(&self) {
        self.each_shard(|shard| shard.change_all_flags(|flags| flags | Flag::Unsent as u32));
        self.has_unsent.store(true, Ordering::Release);
    }

    /// Redis may not have these sessions.
    pub(in crate::store) fn mark_unsent(&self, sessions: &[KeyHash]) {
        for session in sessions {
            let local = local_hash(*session);
            self.change(local, |shard| {
                shard.change_flags(*session, local, |_, flags| flags | Flag::Unsent as u32);
            });
        }
        self.has_unsent.store(true, Ordering::Release);
    }

    /// Redis has this session.
    pub(in crate::store) fn mark_sent(&self, known: &KnownSession) {
        let local = local_hash(known.session);
        self.change(local, |shard| {
            shard.change_flags(known.session, local, |account, flags| {
                // It may have become the session of another account meanwhile.
                if account == known.account { Flag::Loaded as u32 } else { flags }
            });
        });
    }

    /// Up to `most` sessions that Redis may not have: those whose last use is the longest ago, in this order.
    pub(in crate::store) fn unsent(&self, most: usize, now: Timestamp) -> Vec<KnownSession> {
        let mut unsent = Vec::new();
        if !self.has_unsent.swap(false, Ordering::AcqRel) {
            return unsent;
        }
        self.each_lasting(now, |known, flags| {
            if flags & Flag::Unsent as u32 != 0 {
                unsent.push(known);
            }
        });
        if unsent.len() > most {
            self.has_unsent.store(true, Ordering::Release);
            unsent.select_nth_unstable_by_key(most, |known| known.used);
            unsent.truncate(most);
        }
        unsent.sort_unstable_by_key(|known| known.used);
        unsent
    }

    /// Notes that the use of a session is to be told to Redis.
    pub(super) fn note_use(&self, session: KeyHash) {
        let mut used = self.sync.used.lock();
        if used.len() < MOST_WAITING {
            used.push(session);
        }
    }

    /// The sessions whose use is to be told to Redis.
    pub(in crate::store) fn take_used(&self, now: Timestamp) -> Vec<KnownSession> {
        let used = mem::take(&mut *self.sync.used.lock());
        used.into_iter().filter_map(|session| self.find(session, now)).collect()
    }

    /// Notes that Redis is to forget these sessions, because it did not answer.
    pub(in crate::store) fn note_forgotten(&self, sessions: impl Iterator<Item = KeyHash>) {
        let mut forgotten = self.sync.forgotten.lock();
        let room = MOST_WAITING - forgotten.len().min(MOST_WAITING);
        forgotten.extend(sessions.take(room));
    }

    /// The session is learned again: Redis is not to forget it any more.
    pub(super) fn keep_after_all(&self, session: KeyHash) {
        self.sync.forgotten.lock().retain(|forgotten| *forgotten != session);
    }

    /// The sessions that Redis is to forget.
    pub(in crate::store) fn take_forgotten(&self) -> Vec<KeyHash> {
        mem::take(&mut *self.sync.forgotten.lock())
    }

    /// Notes whether this process receives changes from now on. It has missed those made while it was not subscribed.
    pub(in crate::store) fn set_subscribed(&self, is_subscribed: bool) {
        self.sync.state.lock().is_subscribed = is_subscribed;
        self.request_sync();
    }

    pub(in crate::store) fn is_subscribed(&self) -> bool {
        self.sync.state.lock().is_subscribed
    }

    /// Wakes the task that waits in [`Sessions::sync_requested`].
    pub(in crate::store) fn request_sync(&self) {
        self.sync.request.notify_one();
    }

    /// Waits until a sync is requested.
    pub(in crate::store) async fn sync_requested(&self) {
        self.sync.request.notified().await;
    }

    fn apply_records(&self, records: &[SessionRecord], now: Timestamp) {
        let used = |age| Timestamp::from_micros(now.as_micros().saturating_sub(micros(age)));
        for record in records {
            match *record {
                SessionRecord::Learned { session, account, keep, age } => {
                    let known = KnownSession { session, account, keep, used: used(age) };
                    self.insert_shared(known);
                }
                SessionRecord::Forgotten(session) => self.forget(session),
                SessionRecord::Used { session, age } => self.use_elsewhere(session, used(age)),
            }
        }
    }
}

fn micros(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

// What this process knows of the sessions in Redis.

/// What this process knows of the sessions in Redis.
#[derive(Debug, Default)]
pub(super) struct SessionSync {
    pub(super) state: Mutex<SyncState>,
    /// Wakes the task that asks Redis for changes.
    pub(super) request: Notify,
    /// Sessions whose use is to be told to Redis.
    pub(super) used: Mutex<Vec<KeyHash>>,
    /// Sessions that were forgotten here while Redis did not answer.
    pub(super) forgotten: Mutex<Vec<KeyHash>>,
}

#[derive(Debug, Default)]
pub(super) struct SyncState {
    /// Every change up to this one is known.
    pub(super) version: Option<SessionVersion>,
    /// Messages that arrived while sessions are being loaded: a page that was read before such a message is stale.
    pub(super) during_load: Option<Vec<SessionMessage>>,
    /// Whether this process receives changes as they are made.
    pub(super) is_subscribed: bool,
}

impl SyncState {
    /// Moves the known version on to that of a message. `false`: a change before it is missing.
    pub(super) fn advance(&mut self, message: &SessionMessage) -> bool {
        let version = message.version;
        let is_next = match self.version {
            None => version.changes == u64::from(message.is_change),
            Some(known) if known.follows(version) => {
                if known.changes == version.changes && version.stamp > known.stamp {
                    self.version = Some(version);
                }
                return true;
            }
            Some(known) => {
                known.begun == version.begun
                    && known.changes.wrapping_add(u64::from(message.is_change)) == version.changes
            }
        };
        if is_next {
            self.version = Some(version);
        }
        is_next
    }
}

// Versions of the sessions in Redis.

/// Which changes of the sessions in Redis are known: a random number drawn when the hash was created, how many changes
/// there were since then, and the stamp of the latest change or use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) struct SessionVersion {
    pub(super) begun: u64,
    pub(super) changes: u64,
    pub(super) stamp: u64,
}

impl SessionVersion {
    /// Reads three words.
    pub(in crate::store) fn read<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<Self> {
        let begun = u64::from_str_radix(words.next()?, 16).ok()?;
        let (changes, stamp) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { begun, changes, stamp })
    }

    /// Whether this version is `before` or a later one of the same hash, so that Redis has lost nothing between the
    /// two.
    pub(in crate::store) fn follows(self, before: Self) -> bool {
        self.begun == before.begun && self.changes >= before.changes
    }

    /// The moment of the latest change or use, as later stamps compare with it.
    pub(in crate::store) fn stamp(self) -> u64 {
        self.stamp
    }
}

#[cfg(test)]
mod tests;
