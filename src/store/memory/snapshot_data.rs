//! What a snapshot reads from a memory store, and restores into the next one.

use super::known_clients::KnownClients;
use super::known_clients::KnownClientsMark;
use super::store::MemoryStore;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::signing::KeySeed;
use crate::store::bans::table::ChangedBans;
use crate::store::sessions::known::KnownSession;
use crate::store::sessions::saved::SavedSession;

/// Tells cheaply whether anything has changed since it was taken: then another one is different. The default is before
/// everything.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::store) struct ChangeMark {
    bans: u64,
    known: KnownClientsMark,
    sessions: u64,
    newest_key: Option<Timestamp>,
}

/// What has changed, known clients aside.
#[derive(Debug)]
pub(in crate::store) struct Changes {
    pub(in crate::store) bans: ChangedBans,
    /// Sessions as they are now; `None`: it is not known any more.
    pub(in crate::store) sessions: Vec<(KeyHash, Option<KnownSession>)>,
    pub(in crate::store) has_new_key: bool,
}

impl MemoryStore {
    pub(in crate::store) fn change_mark(&self) -> ChangeMark {
        ChangeMark {
            bans: self.bans.mark(),
            known: self.known_clients.mark(),
            sessions: self.sessions.mark(),
            newest_key: self.key_ring.load().own_seeds().first().map(|seed| seed.made),
        }
    }

    /// Notes what changes from now on, for one caller that asks for it. To be called before that caller reads the whole
    /// state.
    pub(in crate::store) fn watch_changes(&self) -> ChangeMark {
        let mark = self.change_mark();
        self.sessions.watch_changes();
        mark
    }

    /// What has changed since that mark, and since the last call; `None`: it is not known any more.
    pub(in crate::store) fn changes_since(&self, mark: &ChangeMark) -> Option<Changes> {
        let now = self.change_mark();
        if now.known.clears != mark.known.clears {
            return None;
        }
        Some(Changes {
            bans: self.bans.changed_since(mark.bans)?,
            sessions: self.sessions.take_changed(self.clock.now())?,
            has_new_key: now.newest_key != mark.newest_key,
        })
    }

    /// The secret that keys are hashed with.
    pub(in crate::store) fn secret(&self) -> [u8; 16] {
        self.secret
    }

    /// Hashes keys with this secret from now on. Called before there are any keys.
    pub(in crate::store) fn hash_with(&mut self, secret: [u8; 16]) {
        self.secret = secret;
    }

    /// The time by which the store counts.
    pub(in crate::store) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(in crate::store) fn import_seeds(&self, seeds: &[KeySeed]) {
        self.key_ring.import(seeds, self.clock.now());
    }

    /// The known clients of all subjects whose last success was between two marks, in the order of these successes. Requests
    /// can look at the table in between.
    pub(in crate::store) fn known_clients_between(
        &self,
        since: &ChangeMark,
        until: &ChangeMark,
    ) -> impl Iterator<Item = KnownClients> {
        let (now, until) = (self.clock.now(), until.known.successes);
        let mut next = Some(since.known.successes);
        let some = std::iter::from_fn(move || {
            let (some, after) = self.known_clients.some_between(next?, until, now);
            next = after;
            Some(some)
        });
        some.flatten()
    }

    /// Makes these clients known, and no others.
    pub(in crate::store) fn restore_known_clients(&self, all: impl IntoIterator<Item = KnownClients>) {
        let now = self.clock.now();
        self.known_clients.clear();
        for known in all {
            self.known_clients.restore(known, now);
        }
    }

    /// All sessions. Requests can look at them in between.
    pub(in crate::store) fn lasting_sessions(&self) -> impl Iterator<Item = KnownSession> {
        self.sessions.lasting(self.clock.now())
    }

    /// Appends all sessions.
    pub(in crate::store) fn write_sessions(&self, bytes: &mut Vec<u8>) {
        self.lasting_sessions().for_each(|known| SavedSession::of(&known).write(bytes));
    }

    /// Makes these sessions known, and no others.
    pub(in crate::store) fn restore_sessions(&self, mut all: Vec<KnownSession>) {
        // In the order of their last uses, so that the longest unused make way first.
        all.sort_unstable_by_key(|known| known.used);
        self.sessions.clear();
        for known in all {
            self.sessions.restore(known);
        }
    }
}
