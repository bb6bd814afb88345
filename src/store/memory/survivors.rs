//! What a snapshot takes out of a memory store, and puts into the next one.

use super::MemoryStore;
use crate::client::keyring::KeySeed;
use crate::clock::Timestamp;
use crate::key::KeyHash;

/// A subject, and each client that is known for it with the end of that.
pub(in crate::store) type Acquainted = (KeyHash, Vec<(u64, Timestamp)>);

/// What a snapshot was taken of, as far as it can be told cheaply: two that are the same need no second one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) struct State {
    bans: u64,
    successes: u64,
    newest_key: Option<Timestamp>,
}

impl MemoryStore {
    pub(in crate::store) fn state(&self) -> State {
        State {
            bans: self.bans.mark(),
            successes: self.known.successes(),
            newest_key: self.ring.export().first().map(|seed| seed.made),
        }
    }

    /// What keys are hashed with.
    pub(in crate::store) fn secret(&self) -> [u8; 16] {
        self.secret
    }

    /// From now on keys are hashed with this; to be called before there are any.
    pub(in crate::store) fn hash_with(&mut self, secret: [u8; 16]) {
        self.secret = secret;
    }

    pub(in crate::store) fn import_seeds(&self, seeds: &[KeySeed]) {
        self.ring.import(seeds, self.clock.now());
    }

    /// All that are known, who succeeded first first.
    pub(in crate::store) fn acquaintances(&self) -> Vec<Acquainted> {
        self.known.all(self.clock.now())
    }

    /// They are known again, and nobody else.
    pub(in crate::store) fn meet_again(&self, all: impl Iterator<Item = Acquainted>) {
        let now = self.clock.now();
        self.known.clear();
        for (subject, clients) in all {
            self.known.put_back(subject, clients, now);
        }
    }
}
