//! Slots that were taken during an outage, so that Redis does not know them.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::key::KeyHash;

/// Requests of this core whose slot is only in this process, or counted nowhere, although they will give one back.
#[derive(Debug, Default)]
pub(super) struct LocalSlots(Mutex<HashMap<KeyHash, SlotCounts>>);

#[derive(Debug, Default)]
struct SlotCounts {
    uncounted: u32,
    in_memory: u32,
}

/// Where the slot of a request is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SlotLocation {
    /// The request passed uncounted.
    Nowhere,
    InMemory,
    /// In Redis, and in memory as every charge of Redis is.
    InRedis,
}

impl LocalSlots {
    pub(super) fn take(&self, key: KeyHash, location: SlotLocation) {
        let mut keys = self.0.lock();
        match location {
            SlotLocation::Nowhere => keys.entry(key).or_default().uncounted += 1,
            SlotLocation::InMemory => keys.entry(key).or_default().in_memory += 1,
            SlotLocation::InRedis => {}
        }
    }

    /// Where a slot of this key is given back. It is not known which of several requests of a key has ended. Slots that
    /// count least go first, so that until all have ended too many slots are counted rather than too few.
    pub(super) fn give_back(&self, key: KeyHash) -> SlotLocation {
        let mut keys = self.0.lock();
        let Some(slots) = keys.get_mut(&key) else { return SlotLocation::InRedis };
        let location = if slots.uncounted > 0 {
            slots.uncounted -= 1;
            SlotLocation::Nowhere
        } else {
            slots.in_memory -= 1;
            SlotLocation::InMemory
        };
        if slots.uncounted == 0 && slots.in_memory == 0 {
            keys.remove(&key);
        }
        location
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_count_least_go_first() {
        let (local_slots, key) = (LocalSlots::default(), KeyHash(7));
        local_slots.take(key, SlotLocation::InMemory);
        local_slots.take(key, SlotLocation::Nowhere);
        local_slots.take(key, SlotLocation::InRedis);
        assert_eq!(local_slots.give_back(KeyHash(8)), SlotLocation::InRedis);
        let order = [(); 3].map(|()| local_slots.give_back(key));
        assert_eq!(order, [SlotLocation::Nowhere, SlotLocation::InMemory, SlotLocation::InRedis]);
        assert!(local_slots.0.lock().is_empty());
    }
}
