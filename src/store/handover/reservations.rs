//! What one predecessor has reserved in the counts of this process.

use std::collections::HashMap;

use crate::decision::Batch;
use crate::decision::batch::Charged;
use crate::key::KeyHash;
use crate::pending_reservations::ReservationGuard;

/// What one predecessor has reserved in the counts of this process.
#[derive(Debug, Default)]
pub(super) struct PredecessorReservations {
    /// How many slots of each key are taken.
    pub(super) slots: HashMap<KeyHash, u32>,
    /// Reservations that wait for their outcome.
    pub(super) guards: HashMap<KeyHash, Vec<ReservationGuard>>,
}

impl PredecessorReservations {
    /// Adds what a batch was charged.
    pub(super) fn add(&mut self, batch: &Batch<'_>, charged: impl Iterator<Item = Option<Charged>>) {
        for (charge, charged) in batch.charges.iter().zip(charged) {
            let Some(charged) = charged else { continue };
            if charge.is_slot() {
                self.add_slot(charge.key);
            }
            if let Some(guard) = charged.reservation {
                self.guards.entry(charge.key).or_default().push(guard);
            }
        }
    }

    pub(super) fn add_slot(&mut self, key: KeyHash) {
        *self.slots.entry(key).or_default() += 1;
    }

    /// Removes one slot of this key; `false`: the predecessor had none.
    pub(super) fn remove_slot(&mut self, key: KeyHash) -> bool {
        let Some(count) = self.slots.get_mut(&key) else { return false };
        *count -= 1;
        if *count == 0 {
            self.slots.remove(&key);
        }
        true
    }

    /// Removes one guard of this key, if there is one.
    pub(super) fn remove_guard(&mut self, key: KeyHash) {
        if let Some(guards) = self.guards.get_mut(&key) {
            guards.pop();
            if guards.is_empty() {
                self.guards.remove(&key);
            }
        }
    }

    /// Moves so many slots and guards of each key into reservations of their own.
    pub(super) fn split_off(&mut self, slots: &[(KeyHash, u32)], guards: &[(KeyHash, u32)]) -> Self {
        let mut part = Self::default();
        for (key, count) in slots {
            if let Some(all) = self.slots.get_mut(key) {
                let taken = (*all).min(*count);
                *all -= taken;
                part.slots.insert(*key, taken);
            }
        }
        self.slots.retain(|_, count| *count > 0);
        part.slots.retain(|_, count| *count > 0);
        for (key, count) in guards {
            if let Some(all) = self.guards.get_mut(key) {
                let left = all.len().saturating_sub(*count as usize);
                part.guards.insert(*key, all.split_off(left));
            }
        }
        self.guards.retain(|_, guards| !guards.is_empty());
        part
    }
}
