//! Moves the counts to another process, or takes them over from one.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::{io, mem};

use super::shard::KeyEntry;
use super::store::{MemoryStore, Padded};
use crate::rules::decision::Batch;
use crate::rules::key::KeyHash;
use crate::rules::limit::Rule;
use crate::store::bans::table::ChangedBans;
use crate::store::memory::known_clients::{KnownClients, KnownClientsMark};
use crate::store::memory::shard::Seconds;
use crate::store::sessions::codec::{KnownSession, SavedSession};
use crate::words::clock::Timestamp;
use crate::words::signing::KeySeed;

/// Small enough that the other process can read a piece while this one writes the next.
const PIECE: usize = 256 << 10;

/// So many keys of a shard leave before some of the next one do: then all shards of the other process fill alike, and
/// each has keys that may be evicted.
const TAKEN_IN_TURN: usize = 64;

fn append(entry: &KeyEntry, piece: &mut Vec<u8>, slots: &mut HashMap<KeyHash, u32>) {
    note_slots(entry, slots);
    *piece = postcard::to_extend(entry, mem::take(piece)).expect("keys can be written");
}

fn note_slots(entry: &KeyEntry, slots: &mut HashMap<KeyHash, u32>) {
    let in_flight = entry.state().in_flight();
    if in_flight > 0 {
        slots.insert(entry.key(), in_flight);
    }
}

// What a snapshot reads from a memory store, and restores into the next one.

impl MemoryStore {
    /// Writes every key that has not expired, in pieces of about [`PIECE`] bytes.
    pub(in crate::store) fn write_keys(&self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let now = Seconds::before(self.clock.now());
        let mut piece = Vec::with_capacity(2 * PIECE);
        for Padded(shard) in &self.shards {
            let mut place = 0;
            loop {
                // The lock is not held while the other process reads. Frozen keys keep their places meanwhile.
                let is_whole = {
                    let shard = shard.lock();
                    while let Some(entry) = shard.entries.get(place).filter(|_| piece.len() < PIECE) {
                        place += 1;
                        if entry.expires > now {
                            piece = postcard::to_extend(entry, piece).map_err(io::Error::other)?;
                        }
                    }
                    place == shard.entries.len()
                };
                if is_whole {
                    break;
                }
                write(&piece)?;
                piece.clear();
            }
        }
        if piece.is_empty() { Ok(()) } else { write(&piece) }
    }

    /// How many keys each shard has.
    pub(in crate::store) fn keys_of_shards(&self) -> Vec<usize> {
        self.shards.iter().map(|shard| shard.0.lock().len()).collect()
    }

    /// Takes a key out, appends it to a piece, and notes how many of its slots are taken.
    pub(in crate::store) fn take_key(&self, key: KeyHash, piece: &mut Vec<u8>, slots: &mut HashMap<KeyHash, u32>) {
        let entry = self.shards[self.shard_of(key)].0.lock().take(key);
        if let Some(entry) = entry {
            append(&entry, piece, slots);
        }
    }

    /// The same with keys of all shards in turn, until the piece is of `size` bytes or no key is left.
    pub(in crate::store) fn take_keys(
        &self,
        next: &mut usize,
        size: usize,
        piece: &mut Vec<u8>,
        slots: &mut HashMap<KeyHash, u32>,
    ) {
        let (mut empty, mut has_shrunk) = (0, false);
        while piece.len() < size && empty < self.shards.len() {
            let mut shard = self.shards[*next].0.lock();
            empty = if shard.len() == 0 { empty + 1 } else { 0 };
            for _ in 0..TAKEN_IN_TURN {
                let Some(entry) = shard.take_last() else { break };
                append(&entry, piece, slots);
                if piece.len() >= size {
                    break;
                }
            }
            // One at a time: all shards become small together, and a request waits for this.
            has_shrunk = has_shrunk || shard.shrink_index();
            drop(shard);
            *next = (*next + 1) % self.shards.len();
        }
    }

    /// Takes so many slots of each key again, which another process had and lost.
    pub(in crate::store) fn restore_slots(&self, slots: &HashMap<KeyHash, u32>) {
        let (rule, now) = (Rule::Concurrent(NonZeroU32::MAX), self.clock.now());
        for (key, count) in slots {
            let mut shard = self.shards[self.shard_of(*key)].0.lock();
            let known = shard.find(*key);
            if let Some(place) = known.or_else(|| shard.admit(*key, &rule, &Batch::default(), now).ok()) {
                (0..*count).for_each(|_| _ = shard.charge(place, &rule, &[], now));
            }
        }
    }

    /// So many keys of each shard of another process are to come, so that new keys leave room for them.
    pub(in crate::store) fn await_keys(&self, shards: &[usize]) {
        let all: usize = shards.iter().sum();
        for (number, Padded(shard)) in self.shards.iter().enumerate() {
            // With another bound there may be another number of shards.
            let of_shard = shards.get(number).filter(|_| shards.len() == self.shards.len());
            shard.lock().await_keys(of_shard.copied().unwrap_or(all / self.shards.len()));
        }
    }

    /// Takes over a piece of the keys of another process, and notes how many slots of each key are taken.
    pub(in crate::store) fn read_keys(&self, mut piece: &[u8], slots: &mut HashMap<KeyHash, u32>) -> io::Result<()> {
        let now = Seconds::before(self.clock.now());
        while !piece.is_empty() {
            let (entry, rest): (KeyEntry, _) =
                postcard::take_from_bytes(piece).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            piece = rest;
            note_slots(&entry, slots);
            self.shards[self.shard_of(entry.key())].0.lock().take_over(entry, now);
        }
        Ok(())
    }

    /// Removes every key: another process has them now, or they did not arrive completely.
    pub(in crate::store) fn clear(&self) {
        for Padded(shard) in &self.shards {
            // Freed after the lock is released.
            let keys = shard.lock().take_all();
            drop(keys);
        }
    }
}

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
