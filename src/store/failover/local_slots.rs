//! Slots in flight that Redis knows nothing of: taken while it was away.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::key::KeyHash;

/// Requests of this core that hold a slot here alone, or none at all, though they are to give one back.
#[derive(Debug, Default)]
pub(super) struct LocalSlots(Mutex<HashMap<KeyHash, Slots>>);

#[derive(Debug, Default)]
struct Slots {
    uncounted: u32,
    in_memory: u32,
}

/// Where a request holds the slot that it gives back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// It passed uncounted.
    Nowhere,
    InMemory,
    /// In Redis, and in memory as what Redis admits is.
    InRedis,
}

impl LocalSlots {
    pub(super) fn take(&self, key: KeyHash, place: Place) {
        let mut keys = self.0.lock();
        match place {
            Place::Nowhere => keys.entry(key).or_default().uncounted += 1,
            Place::InMemory => keys.entry(key).or_default().in_memory += 1,
            Place::InRedis => {}
        }
    }

    /// Where a slot of this key is given back. Nobody knows which of several requests of a key is through: the slots
    /// that hold back least go first, so that in between too many are counted rather than too few.
    pub(super) fn give_back(&self, key: KeyHash) -> Place {
        let mut keys = self.0.lock();
        let Some(slots) = keys.get_mut(&key) else { return Place::InRedis };
        let place = if slots.uncounted > 0 {
            slots.uncounted -= 1;
            Place::Nowhere
        } else {
            slots.in_memory -= 1;
            Place::InMemory
        };
        if slots.uncounted == 0 && slots.in_memory == 0 {
            keys.remove(&key);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_back_least_goes_first() {
        let (local_slots, key) = (LocalSlots::default(), KeyHash(7));
        local_slots.take(key, Place::InMemory);
        local_slots.take(key, Place::Nowhere);
        local_slots.take(key, Place::InRedis);
        assert_eq!(local_slots.give_back(KeyHash(8)), Place::InRedis);
        let order = [(); 3].map(|()| local_slots.give_back(key));
        assert_eq!(order, [Place::Nowhere, Place::InMemory, Place::InRedis]);
        assert!(local_slots.0.lock().is_empty());
    }
}
