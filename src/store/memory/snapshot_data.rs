//! What a snapshot reads from a memory store, and restores into the next one.

use super::store::MemoryStore;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::signing::KeySeed;
use crate::store::sessions::saved::SavedSession;

/// A subject, and its known clients with the time until which each is known.
pub(in crate::store) type KnownClients = (KeyHash, Vec<(u64, Timestamp)>);

/// Tells cheaply whether anything changed since the last snapshot: if two marks are equal, no new one is needed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) struct ChangeMark {
    bans: u64,
    successes: u64,
    sessions: u64,
    newest_key: Option<Timestamp>,
}

impl MemoryStore {
    pub(in crate::store) fn change_mark(&self) -> ChangeMark {
        ChangeMark {
            bans: self.bans.mark(),
            successes: self.known_clients.successes(),
            sessions: self.sessions.mark(),
            newest_key: self.key_ring.load().own_seeds().first().map(|seed| seed.made),
        }
    }

    /// The secret that keys are hashed with.
    pub(in crate::store) fn secret(&self) -> [u8; 16] {
        self.secret
    }

    /// Hashes keys with this secret from now on. Called before there are any keys.
    pub(in crate::store) fn hash_with(&mut self, secret: [u8; 16]) {
        self.secret = secret;
    }

    pub(in crate::store) fn import_seeds(&self, seeds: &[KeySeed]) {
        self.key_ring.import(seeds, self.clock.now());
    }

    /// All known clients, in the order of the last success of their subject.
    pub(in crate::store) fn known_clients(&self) -> Vec<KnownClients> {
        self.known_clients.all(self.clock.now())
    }

    /// Makes these clients known, and no others.
    pub(in crate::store) fn restore_known_clients(&self, all: impl Iterator<Item = KnownClients>) {
        let now = self.clock.now();
        self.known_clients.clear();
        for (subject, clients) in all {
            self.known_clients.restore(subject, clients, now);
        }
    }

    /// Appends all sessions.
    pub(in crate::store) fn write_sessions(&self, bytes: &mut Vec<u8>) {
        self.sessions.each_lasting(self.clock.now(), |known, _| SavedSession::of(&known).write(bytes));
    }

    /// Makes these sessions known, and no others.
    pub(in crate::store) fn restore_sessions(&self, all: &[SavedSession]) {
        let mut all: Vec<_> = all.iter().map(SavedSession::known).collect();
        // In the order of their last uses, so that the longest unused make way first.
        all.sort_unstable_by_key(|known| known.used);
        self.sessions.clear();
        for known in all {
            self.sessions.restore(known);
        }
    }
}
