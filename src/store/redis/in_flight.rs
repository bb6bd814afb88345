//! Slots in flight that one core holds in Redis: under which number each was taken, and for how long.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::Instant;
use tokio::time::sleep;

use super::Core;
use super::Decided;
use super::scripts;
use super::together::together;
use crate::decision::Batch;
use crate::key::KeyHash;

/// The slots that requests of this core hold.
///
/// A slot is held by a lease, so that what a dead gateway took comes back. Requests that take longer than
/// [`RENEWED_AFTER`] renew theirs; others never say more than that they are through.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<Slots>);

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
type Held = (u32, Vec<KeyHash>);

impl Core {
    /// Remembers the slots that a batch has taken, by a command sent at `sent` or later.
    pub(super) fn hold(self: &Arc<Self>, batch: &Batch<'_>, decided: &Decided, sent: Instant) {
        let mut is_any = false;
        for key in decided.slots(batch) {
            self.in_flight.take(key, decided.holder, sent);
            is_any = true;
        }
        if is_any && self.in_flight.needs_keeper() {
            // Not among the tasks that are waited for at the end: what is held then is given up with the process.
            tokio::spawn(Arc::clone(self).keep());
        }
    }

    /// Holds on to what requests that take long have taken, for as long as any are under way.
    async fn keep(self: Arc<Self>) {
        while !self.in_flight.is_over() {
            sleep(LOOKED_AT).await;
            self.renew(Instant::now()).await;
        }
    }

    /// Renews what is old now.
    async fn renew(&self, now: Instant) {
        let old = self.by_slot(&self.in_flight.old(now));
        together(old.iter().map(|(slot, held)| async move {
            if self.links.call(*slot, &self.held(held).renew()).await.is_ok() {
                self.in_flight.renewed(held.0, &held.1, now);
            }
        }))
        .await;
    }

    fn by_slot(&self, all: &[Held]) -> Vec<(u16, Held)> {
        let mut by_slot: Vec<(u16, Held)> = Vec::new();
        for (holder, keys) in all {
            for key in keys {
                let slot = self.slot(*key);
                match by_slot.iter_mut().find(|(other, held)| *other == slot && held.0 == *holder) {
                    Some((_, held)) => held.1.push(*key),
                    None => by_slot.push((slot, (*holder, vec![*key]))),
                }
            }
        }
        by_slot
    }

    fn held<'h>(&'h self, (holder, keys): &'h Held) -> scripts::Held<'h> {
        let prefix = &self.shared.settings.key_prefix;
        scripts::Held { prefix, holder: *holder, keys }
    }
}

impl InFlight {
    /// A slot was taken, by a command sent at `sent`.
    fn take(&self, key: KeyHash, holder: u32, sent: Instant) {
        self.0.lock().by_key.entry(key).or_default().push(Slot { holder, leased: sent });
    }

    /// A request is through: under which number its slot is to be given back. `None`: none is held for it.
    pub(super) fn give_back(&self, key: KeyHash) -> Option<u32> {
        let mut slots = self.0.lock();
        let held = slots.by_key.get_mut(&key)?;
        let slot = held.remove(0);
        if held.is_empty() {
            slots.by_key.remove(&key);
        }
        Some(slot.holder)
    }

    /// A slot that was taken under `holder` just now is given back.
    pub(super) fn give_up(&self, key: KeyHash, holder: u32) -> bool {
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
    fn old(&self, now: Instant) -> Vec<Held> {
        let mut old: Vec<Held> = Vec::new();
        for (key, held) in &self.0.lock().by_key {
            for slot in held.iter().filter(|slot| now.saturating_duration_since(slot.leased) >= RENEWED_AFTER) {
                add(&mut old, slot.holder, *key);
            }
        }
        old
    }

    /// The leases of all slots that `holder` has of these keys began again at `sent`.
    fn renewed(&self, holder: u32, keys: &[KeyHash], sent: Instant) {
        let mut slots = self.0.lock();
        for key in keys {
            let held = slots.by_key.get_mut(key).into_iter().flatten();
            held.filter(|slot| slot.holder == holder).for_each(|slot| slot.leased = slot.leased.max(sent));
        }
    }

    /// Whether somebody new is to look after the leases: asked when a slot was taken.
    fn needs_keeper(&self) -> bool {
        let mut slots = self.0.lock();
        !std::mem::replace(&mut slots.is_kept, true)
    }

    /// Whether nothing is held any more. Then nobody looks after the leases.
    fn is_over(&self) -> bool {
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

/// How often slots are looked through for old ones.
const LOOKED_AT: Duration = Duration::from_secs(5);

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
