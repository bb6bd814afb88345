//! Counts that leave for another process, and those that come from one.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;

use super::MemoryStore;
use super::Padded;
use super::shard::Entry;
use super::shard::Seconds;
use super::shard::Shard;
use crate::key::KeyHash;

impl MemoryStore {
    /// From here on nobody counts here: whoever comes finds that the counts have moved.
    pub(in crate::store) fn freeze(&self) {
        self.handover.begin();
        self.each_shard(|shard| shard.has_moved = true);
    }

    /// They have not moved after all.
    pub(in crate::store) fn thaw(&self) {
        self.each_shard(|shard| shard.has_moved = false);
        self.handover.end_here();
    }

    /// Every key that counts something, written one after the other, in pieces of about [`PIECE`] bytes. What expired
    /// stays behind.
    pub(in crate::store) fn write_keys(&self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let now = Seconds::before(self.clock.now());
        let mut piece = Vec::with_capacity(2 * PIECE);
        for Padded(shard) in &self.shards {
            let mut place = 0;
            loop {
                // Whoever comes meanwhile does not wait for the other process. What is frozen stays where it is.
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

    /// Takes in a piece of what another process counted, and notes how many slots in flight there are of each key.
    pub(in crate::store) fn read_keys(&self, mut piece: &[u8], slots: &mut HashMap<KeyHash, u32>) -> io::Result<()> {
        while !piece.is_empty() {
            let (entry, rest): (Entry, _) =
                postcard::take_from_bytes(piece).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            piece = rest;
            let (key, in_flight) = (entry.key(), entry.state().in_flight());
            if in_flight > 0 {
                slots.insert(key, in_flight);
            }
            self.shards[self.shard_of(key)].0.lock().take_in(entry);
        }
        Ok(())
    }

    /// Forgets every key: another process has them, or they did not come whole.
    pub(in crate::store) fn clear(&self) {
        for Padded(shard) in &self.shards {
            // Freed when the lock is not held any more.
            let keys = shard.lock().take_all();
            drop(keys);
        }
    }

    fn each_shard(&self, change: impl Fn(&mut Shard)) {
        self.shards.iter().for_each(|shard| change(&mut shard.0.lock()));
    }
}

/// Small enough that the other side has something to do while this one writes on.
const PIECE: usize = 256 << 10;
