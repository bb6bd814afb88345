//! Moves the counts to another process, or takes them over from one.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;
use std::mem;
use std::num::NonZeroU32;

use super::seconds::Seconds;
use super::shard::KeyEntry;
use super::shard::Shard;
use super::store::MemoryStore;
use super::store::Padded;
use crate::decision::Batch;
use crate::key::KeyHash;
use crate::limit::Rule;

impl MemoryStore {
    /// Stops counting in this process: callers find that the counts have moved.
    pub(in crate::store) fn freeze(&self) {
        self.handover.begin_move();
        self.each_shard(|shard| shard.has_moved = true);
    }

    /// Counts in this process again: the counts have not moved after all.
    pub(in crate::store) fn thaw(&self) {
        self.each_shard(|shard| shard.has_moved = false);
        self.handover.cancel_move();
    }

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

    fn each_shard(&self, change: impl Fn(&mut Shard)) {
        self.shards.iter().for_each(|shard| change(&mut shard.0.lock()));
    }
}

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
