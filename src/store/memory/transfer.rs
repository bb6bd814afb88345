//! Moves the counts to another process, or takes them over from one.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;

use super::seconds::Seconds;
use super::shard::KeyEntry;
use super::shard::Shard;
use super::store::MemoryStore;
use super::store::Padded;
use crate::key::KeyHash;

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

    /// Takes over a piece of the keys of another process, and notes how many slots of each key are taken.
    pub(in crate::store) fn read_keys(&self, mut piece: &[u8], slots: &mut HashMap<KeyHash, u32>) -> io::Result<()> {
        while !piece.is_empty() {
            let (entry, rest): (KeyEntry, _) =
                postcard::take_from_bytes(piece).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            piece = rest;
            let (key, in_flight) = (entry.key(), entry.state().in_flight());
            if in_flight > 0 {
                slots.insert(key, in_flight);
            }
            self.shards[self.shard_of(key)].0.lock().take_over(entry);
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
