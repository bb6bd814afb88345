//! Counts, for each key, the reservations of this process whose outcome is not known yet, and the resets meanwhile.
//!
//! The rules see a [`ReservationGuard`] as an opaque value: a store makes it, a request holds it, and only the store
//! asks it anything. So they do a [`ToldLater`], which a request holds and a store tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::words::clock::Timestamp;

/// The reservations of one key in this process that wait for their outcome.
#[derive(Debug, Default)]
pub struct PendingReservations {
    /// How many guards there are.
    reservations: AtomicU32,
    /// How many decisions are under way that may reserve something.
    watches: AtomicU32,
    /// How often the key was reset while there was a guard or a watch.
    resets: AtomicU32,
    /// One of these resets covers what a shared store has charged up to this moment of its clock, in us.
    reset_until: AtomicU64,
}

/// Held from before a charge until it is decided, so that no reset in between is missed.
#[derive(Debug)]
pub struct ResetWatch {
    key: Arc<PendingReservations>,
    resets: u32,
}

/// A reservation that waits for its outcome. It ends when the last clone is dropped, and so with any end of its
/// request.
#[derive(Debug)]
pub struct ReservationGuard {
    key: Arc<PendingReservations>,
    resets: u32,
    /// When a shared store charged it, by its clock; `None`: it was charged in this process.
    charged: Option<Timestamp>,
}

impl PendingReservations {
    /// For a key that was reset `resets` times before.
    pub fn with_resets(resets: u32) -> Self {
        Self { resets: AtomicU32::new(resets), ..Self::default() }
    }

    pub fn watch(self: &Arc<Self>) -> ResetWatch {
        self.watches.fetch_add(1, Ordering::AcqRel);
        ResetWatch { key: Arc::clone(self), resets: self.resets.load(Ordering::Acquire) }
    }

    /// Whether any reservation waits.
    pub fn is_some(&self) -> bool {
        self.count() > 0
    }

    /// Whether any reservation waits, or a decision is under way that may make one.
    pub fn may_be_some(&self) -> bool {
        // In this order: a watch that becomes a reservation is one of the two at any time.
        self.watches.load(Ordering::Acquire) > 0 || self.is_some()
    }

    /// How many reservations wait.
    pub fn count(&self) -> u32 {
        self.reservations.load(Ordering::Acquire)
    }

    pub fn resets(&self) -> u32 {
        self.resets.load(Ordering::Acquire)
    }

    /// The key was reset, and with it what the waiting reservations have charged.
    ///
    /// A reset by a shared store may become known late. It then covers only what that store had charged up to `until`,
    /// by its own clock. `None`: the moment of the reset is not known, and it covers everything.
    pub fn reset(&self, until: Option<Timestamp>) {
        self.reset_until.fetch_max(until.map_or(u64::MAX, Timestamp::as_micros), Ordering::AcqRel);
        self.resets.fetch_add(1, Ordering::AcqRel);
    }
}

impl ResetWatch {
    /// As if the watch had begun when the key was reset this many times.
    #[must_use]
    pub fn with_resets(mut self, resets: u32) -> Self {
        self.resets = resets;
        self
    }

    /// This process has charged it.
    pub fn reserve(self) -> ReservationGuard {
        ReservationGuard::new(&self.key, self.resets, None)
    }

    /// A shared store has charged it, at this moment of its clock.
    pub fn reserve_shared(self, charged: Timestamp) -> ReservationGuard {
        ReservationGuard::new(&self.key, self.resets, Some(charged))
    }
}

impl Drop for ResetWatch {
    fn drop(&mut self) {
        self.key.watches.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ReservationGuard {
    fn new(key: &Arc<PendingReservations>, resets: u32, charged: Option<Timestamp>) -> Self {
        key.reservations.fetch_add(1, Ordering::AcqRel);
        Self { key: Arc::clone(key), resets, charged }
    }

    /// How often the key had been reset when this was charged.
    pub fn resets(&self) -> u32 {
        self.resets
    }

    /// Whether the key was reset since, so that nothing is left of the charge.
    pub fn was_reset(&self) -> bool {
        let until = || self.key.reset_until.load(Ordering::Acquire);
        self.resets != self.key.resets.load(Ordering::Acquire)
            && self.charged.is_none_or(|charged| charged.as_micros() <= until())
    }
}

impl Clone for ReservationGuard {
    fn clone(&self) -> Self {
        Self::new(&self.key, self.resets, self.charged)
    }
}

impl Drop for ReservationGuard {
    fn drop(&mut self) {
        self.key.reservations.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Two guards of one key are equal when no reset lies between them.
impl PartialEq for ReservationGuard {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.key, &other.key) && self.resets == other.resets
    }
}

impl Eq for ReservationGuard {}

// What a store tells of a request that has ended.

/// A yes or no that a store tells later, if at all. Clones are told together. By default nobody asks, and nothing is told.
#[derive(Clone, Debug, Default)]
pub struct ToldLater(Option<Arc<AtomicU8>>);

const NO: u8 = 1;
const YES: u8 = 2;

impl ToldLater {
    /// Somebody asks.
    pub fn asked() -> Self {
        Self(Some(Arc::default()))
    }

    /// What is told last holds.
    pub fn tell(&self, is_so: bool) {
        if let Some(told) = &self.0 {
            told.store(if is_so { YES } else { NO }, Ordering::Release);
        }
    }

    /// `None`: it was not told yet, or nobody asks.
    pub fn told(&self) -> Option<bool> {
        match self.0.as_ref()?.load(Ordering::Acquire) {
            NO => Some(false),
            YES => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clones_are_told_and_who_does_not_ask_is_not() {
        let asked = ToldLater::asked();
        assert_eq!(asked.told(), None);
        asked.clone().tell(false);
        assert_eq!(asked.told(), Some(false));
        asked.tell(true);
        assert_eq!(asked.clone().told(), Some(true));
        let unasked = ToldLater::default();
        unasked.tell(true);
        assert_eq!(unasked.told(), None);
    }
}
