//! The reservations of this process that wait for their outcome.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::rules::decision::batch::Charged;
use crate::rules::decision::{Batch, Charge, Verdict};
use crate::rules::key::KeyHash;
use crate::words::clock::Timestamp;
use crate::words::pending_reservations::{PendingReservations, ReservationGuard, ResetWatch};

/// The keys with reservations whose outcome is not known yet. There is one for the process, and only charges that count
/// by outcome use it.
///
/// A key stays while it has a watch or a reservation. In front of a shared store keys are those of this process, see
/// [`local_key`](super::key_ring::local_key).
#[derive(Debug)]
pub struct Unsettled {
    places: RandomState,
    parts: Box<[Mutex<WaitingKeys>]>,
}

/// The watches of a batch, in its order; `None` for charges that do not wait for an outcome.
pub type Watches = SmallVec<[Option<ResetWatch>; 4]>;

#[derive(Debug, Default)]
struct WaitingKeys {
    keys: HashMap<KeyHash, Weak<PendingReservations>>,
    /// With more keys than this, unused keys are removed.
    prune_above: usize,
}

impl Unsettled {
    /// Watches the keys of a batch before a shared store decides it.
    pub fn watches(&self, batch: &Batch<'_>) -> Watches {
        let watch = |charge: &Charge<'_>| charge.waits_for_outcome().then(|| self.watch(charge.key));
        batch.charges.iter().map(watch).collect()
    }

    /// Notes the reservations that a shared store has made, and shortens its waits.
    pub fn note(&self, batch: &Batch<'_>, watches: Watches, verdicts: &mut [Verdict]) {
        for (watch, verdict) in watches.into_iter().zip(&mut *verdicts) {
            if let (Some(watch), Some(charged)) = (watch, &mut verdict.charged) {
                // A charge in this process has a reservation already.
                let moment = charged.moment;
                charged.reservation.get_or_insert_with(|| watch.reserve_shared(moment));
            }
        }
        // The watches of this batch are gone now, so they do not count as reservations that may come.
        for (charge, verdict) in batch.charges.iter().zip(verdicts) {
            verdict.retry_after = verdict.retry_after.map(|wait| self.shortened(charge, wait));
        }
    }

    /// Watches a key. Called before the charge, so that no reset in between is missed.
    pub fn watch(&self, key: KeyHash) -> ResetWatch {
        let mut part = self.part(key).lock();
        if let Some(waiting) = part.keys.get(&key).and_then(Weak::upgrade) {
            return waiting.watch();
        }
        if part.keys.len() >= part.prune_above {
            part.keys.retain(|_, waiting| waiting.strong_count() > 0);
            part.prune_above = (2 * part.keys.len()).max(FEW);
        }
        let waiting = Arc::new(PendingReservations::default());
        part.keys.insert(key, Arc::downgrade(&waiting));
        waiting.watch()
    }

    /// All keys with reservations: how many, and how often the key was reset before.
    pub fn all(&self) -> Vec<(KeyHash, u32, u32)> {
        let mut all = Vec::new();
        for part in &self.parts {
            let part = part.lock();
            let waiting = part.keys.iter().filter_map(|(key, waiting)| Some((*key, waiting.upgrade()?)));
            all.extend(waiting.map(|(key, waiting)| (key, waiting.count(), waiting.resets())));
        }
        all.retain(|(_, count, _)| *count > 0);
        all
    }

    /// Takes over `count` reservations of another process, of a key that had been reset so often.
    pub fn take_over(&self, key: KeyHash, count: u32, resets: u32) -> Vec<ReservationGuard> {
        let mut part = self.part(key).lock();
        let known = part.keys.get(&key).and_then(Weak::upgrade);
        let waiting = known.unwrap_or_else(|| {
            let waiting = Arc::new(PendingReservations::with_resets(resets));
            part.keys.insert(key, Arc::downgrade(&waiting));
            waiting
        });
        (0..count).map(|_| waiting.watch().with_resets(resets).reserve()).collect()
    }

    /// Whether a reservation of this key waits for its outcome, and may be given back.
    pub fn any(&self, key: KeyHash) -> bool {
        let waiting = self.part(key).lock().keys.get(&key).and_then(Weak::upgrade);
        waiting.is_some_and(|waiting| waiting.is_some())
    }

    /// The same, or a shared store is deciding about one. It answers on several connections, so a denial may arrive before
    /// the reservations that caused it.
    pub fn may_be_any(&self, key: KeyHash) -> bool {
        let waiting = self.part(key).lock().keys.get(&key).and_then(Weak::upgrade);
        waiting.is_some_and(|waiting| waiting.may_be_some())
    }

    /// Voids the reservations of a key that was reset: those that a shared store has charged up to `until`, if that is
    /// known.
    pub fn reset(&self, key: KeyHash, until: Option<Timestamp>) {
        let waiting = self.part(key).lock().keys.get(&key).and_then(Weak::upgrade);
        if let Some(waiting) = waiting {
            waiting.reset(until);
        }
    }

    /// How long a denied request is to wait: at most [`SHORT_WAIT`] if a reservation may be given back at any time.
    pub fn shortened(&self, charge: &Charge<'_>, wait: Duration) -> Duration {
        let may_come_back = wait > SHORT_WAIT && charge.waits_for_outcome() && self.may_be_any(charge.key);
        if may_come_back { SHORT_WAIT } else { wait }
    }

    fn part(&self, key: KeyHash) -> &Mutex<WaitingKeys> {
        let parts = self.parts.len() as u64;
        let place = (u128::from(self.places.hash_one(key)) * u128::from(parts)) >> 64;
        &self.parts[usize::try_from(place).expect("below the number of parts")]
    }
}

/// Whether the key was reset since it was charged, so that nothing is left of the charge.
pub fn was_reset(charged: &Charged) -> bool {
    charged.reservation.as_ref().is_some_and(ReservationGuard::was_reset)
}

impl Default for Unsettled {
    fn default() -> Self {
        Self { places: RandomState::new(), parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }
}

/// More than cores, so that two cores seldom want the same one.
const PARTS: usize = 32;

/// With fewer keys than this, unused keys are not removed.
const FEW: usize = 64;

const SHORT_WAIT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: KeyHash = KeyHash(1);
    const BOB: KeyHash = KeyHash(2);

    #[test]
    fn a_reservation_waits_until_its_last_guard_is_dropped() {
        let unsettled = Unsettled::default();
        let watch = unsettled.watch(ALICE);
        assert!(!unsettled.any(ALICE), "nothing was charged yet");
        let reservation = watch.reserve();
        assert!(unsettled.any(ALICE) && !unsettled.any(BOB));
        let other = unsettled.watch(ALICE).reserve();
        let clone = reservation.clone();
        drop((reservation, other));
        assert!(unsettled.any(ALICE));
        drop(clone);
        assert!(!unsettled.any(ALICE));
    }

    #[test]
    fn a_decision_that_is_under_way_may_make_a_reservation() {
        let unsettled = Unsettled::default();
        let (first, second) = (unsettled.watch(ALICE), unsettled.watch(ALICE));
        assert!(unsettled.may_be_any(ALICE) && !unsettled.any(ALICE) && !unsettled.may_be_any(BOB));
        let reservation = first.reserve();
        drop(second);
        assert!(unsettled.may_be_any(ALICE) && unsettled.any(ALICE));
        drop(reservation);
        assert!(!unsettled.may_be_any(ALICE));
    }

    #[test]
    fn a_reset_voids_what_was_watched_before() {
        let unsettled = Unsettled::default();
        let before = unsettled.watch(ALICE).reserve();
        let watched = unsettled.watch(ALICE);
        let other = unsettled.watch(BOB).reserve();
        unsettled.reset(ALICE, None);
        let after = unsettled.watch(ALICE).reserve();
        assert!(before.was_reset() && before.clone().was_reset() && watched.reserve().was_reset());
        assert!(!after.was_reset() && !other.was_reset());
    }

    #[test]
    fn a_late_reset_does_not_void_later_charges() {
        let unsettled = Unsettled::default();
        let at = Timestamp::from_micros;
        let shared = |micros| unsettled.watch(ALICE).reserve_shared(at(micros));
        let (before, during, after, own) = (shared(4), shared(5), shared(6), unsettled.watch(ALICE).reserve());
        unsettled.reset(ALICE, Some(at(5)));
        assert!(before.was_reset() && during.was_reset() && own.was_reset());
        assert!(!after.was_reset() && !after.clone().was_reset() && !shared(5).was_reset());
        unsettled.reset(ALICE, Some(at(3)));
        assert!(!after.was_reset());
        unsettled.reset(ALICE, None);
        assert!(after.was_reset());
    }

    #[test]
    fn unused_keys_take_no_room() {
        let unsettled = Unsettled::default();
        let kept: Vec<_> = (0..1000).map(|number| unsettled.watch(KeyHash(number)).reserve()).collect();
        for number in 1000..100_000 {
            drop(unsettled.watch(KeyHash(number)).reserve());
        }
        let noted: usize = unsettled.parts.iter().map(|part| part.lock().keys.len()).sum();
        assert!(noted < 2 * kept.len() + PARTS * FEW, "{noted}");
        assert!((0..1000).all(|number| unsettled.any(KeyHash(number))));
    }
}
