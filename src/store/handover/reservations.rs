//! What one predecessor has reserved in the counts of this process.

use std::collections::HashMap;

use crate::decision::Batch;
use crate::decision::batch::Charged;
use crate::decision::ticket::Ticket;
use crate::key::KeyHash;

/// What one predecessor has reserved in the counts of this process.
#[derive(Debug, Default)]
pub(super) struct PredecessorReservations {
    /// How many slots of each key are taken.
    pub(super) slots: HashMap<KeyHash, u32>,
    /// Reservations that wait for their outcome.
    pub(super) tickets: HashMap<KeyHash, Vec<Ticket>>,
}

impl PredecessorReservations {
    /// Adds what a batch was charged.
    pub(super) fn add(&mut self, batch: &Batch<'_>, charged: impl Iterator<Item = Option<Charged>>) {
        for (charge, charged) in batch.charges.iter().zip(charged) {
            let Some(charged) = charged else { continue };
            if charge.is_slot() {
                *self.slots.entry(charge.key).or_default() += 1;
            }
            if let Some(ticket) = charged.ticket {
                self.tickets.entry(charge.key).or_default().push(ticket);
            }
        }
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

    /// Removes one ticket of this key, if there is one.
    pub(super) fn remove_ticket(&mut self, key: KeyHash) {
        if let Some(tickets) = self.tickets.get_mut(&key) {
            tickets.pop();
            if tickets.is_empty() {
                self.tickets.remove(&key);
            }
        }
    }

    /// Moves so many slots and tickets of each key into reservations of their own.
    pub(super) fn split_off(&mut self, slots: &[(KeyHash, u32)], tickets: &[(KeyHash, u32)]) -> Self {
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
        for (key, count) in tickets {
            if let Some(all) = self.tickets.get_mut(key) {
                let left = all.len().saturating_sub(*count as usize);
                part.tickets.insert(*key, all.split_off(left));
            }
        }
        self.tickets.retain(|_, tickets| !tickets.is_empty());
        part
    }
}
