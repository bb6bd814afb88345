//! Slots in flight that one core holds in Redis: under which number each was taken, and for how long.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::key::KeyHash;

/// The slots that requests of this core hold.
///
/// A slot is held by a lease, so that what a dead gateway took comes back. Requests that take longer than
/// [`RENEWED_AFTER`] renew theirs; others never say more than that they are through.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct InFlight(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    /// Oldest first.
    by_key: HashMap<KeyHash, SmallVec<[Slot; 1]>>,
    /// Someone looks after the leases.
    is_kept: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    holder: u32,
    /// When its lease began, or before.
    leased: Instant,
}

/// Slots of one holder, a key once for each.
pub(in crate::store::redis) type Held = (u32, Vec<KeyHash>);

impl InFlight {
    /// A slot was taken, by a command sent at `sent`.
    pub(in crate::store::redis) fn take(&self, key: KeyHash, holder: u32, sent: Instant) {
        self.0.lock().by_key.entry(key).or_default().push(Slot { holder, leased: sent });
    }

    /// A request is through: under which number its slot is to be given back. `None`: none is held for it.
    pub(in crate::store::redis) fn give_back(&self, key: KeyHash) -> Option<u32> {
        let mut slots = self.0.lock();
        let held = slots.by_key.get_mut(&key)?;
        let slot = held.remove(0);
        if held.is_empty() {
            slots.by_key.remove(&key);
        }
        Some(slot.holder)
    }

    /// A slot that was taken under `holder` just now is given back.
    pub(in crate::store::redis) fn give_up(&self, key: KeyHash, holder: u32) -> bool {
        let mut slots = self.0.lock();
        let Some(held) = slots.by_key.get_mut(&key) else { return false };
        let Some(newest) = held.iter().rposition(|slot| slot.holder == holder) else { return false };
        held.remove(newest);
        if held.is_empty() {
            slots.by_key.remove(&key);
        }
        true
    }

    /// What has been held for so long that its lease is to be renewed.
    pub(in crate::store::redis) fn old(&self, now: Instant) -> Vec<Held> {
        let mut old: Vec<Held> = Vec::new();
        for (key, held) in &self.0.lock().by_key {
            for slot in held.iter().filter(|slot| now.saturating_duration_since(slot.leased) >= RENEWED_AFTER) {
                add(&mut old, slot.holder, *key);
            }
        }
        old
    }

    /// The leases of all slots that `holder` has of these keys began again at `sent`.
    pub(in crate::store::redis) fn renewed(&self, holder: u32, keys: &[KeyHash], sent: Instant) {
        let mut slots = self.0.lock();
        for key in keys {
            let held = slots.by_key.get_mut(key).into_iter().flatten();
            held.filter(|slot| slot.holder == holder).for_each(|slot| slot.leased = slot.leased.max(sent));
        }
    }

    /// Whether somebody new is to look after the leases: asked when a slot was taken.
    pub(in crate::store::redis) fn needs_keeper(&self) -> bool {
        let mut slots = self.0.lock();
        !std::mem::replace(&mut slots.is_kept, true)
    }

    /// Whether nothing is held any more. Then nobody looks after the leases.
    pub(in crate::store::redis) fn is_over(&self) -> bool {
        let mut slots = self.0.lock();
        slots.is_kept = !slots.by_key.is_empty();
        !slots.is_kept
    }
}

fn add(all: &mut Vec<Held>, holder: u32, key: KeyHash) {
    match all.iter_mut().find(|(other, _)| *other == holder) {
        Some((_, keys)) => keys.push(key),
        None => all.push((holder, vec![key])),
    }
}

/// A third of a lease: two renewals may fail.
const RENEWED_AFTER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u128) -> KeyHash {
        KeyHash(number)
    }

    #[test]
    fn a_slot_is_given_back_once_under_the_number_it_was_taken_under() {
        let (in_flight, now) = (InFlight::default(), Instant::now());
        in_flight.take(key(1), 100, now);
        in_flight.take(key(1), 200, now);
        in_flight.take(key(2), 100, now);
        assert_eq!(in_flight.give_back(key(1)), Some(100));
        assert_eq!(in_flight.give_back(key(1)), Some(200));
        assert_eq!(in_flight.give_back(key(1)), None);
        assert_eq!(in_flight.give_back(key(3)), None);
        assert!(!in_flight.give_up(key(2), 200) && in_flight.give_up(key(2), 100) && !in_flight.give_up(key(2), 100));
        assert!(in_flight.0.lock().by_key.is_empty());
    }

    #[test]
    fn only_what_is_held_for_long_is_renewed() {
        let (in_flight, begin) = (InFlight::default(), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        in_flight.take(key(1), 100, begin);
        in_flight.take(key(1), 100, begin);
        in_flight.take(key(2), 100, after(4));
        assert_eq!(in_flight.old(after(9)), []);
        assert_eq!(in_flight.old(after(10)), [(100, vec![key(1), key(1)])]);
        in_flight.renewed(100, &[key(1)], after(10));
        assert_eq!(in_flight.old(after(15)), [(100, vec![key(2)])]);
        in_flight.renewed(300, &[key(2)], after(15));
        assert_eq!(in_flight.old(after(15)), [(100, vec![key(2)])]);
    }

    #[test]
    fn one_looks_after_the_leases_while_anything_is_held() {
        let in_flight = InFlight::default();
        in_flight.take(key(1), 100, Instant::now());
        assert!(in_flight.needs_keeper());
        assert!(!in_flight.needs_keeper());
        assert!(!in_flight.is_over());
        in_flight.give_back(key(1));
        assert!(in_flight.is_over());
        assert!(in_flight.needs_keeper());
    }
}
