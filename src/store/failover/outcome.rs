//! Settles requests in Redis and in the copy of its counts in this process.

use std::num::NonZeroU32;
use std::time::Duration;

use super::store::Failover;
use crate::rules::decision::batch::{Charged, Ledger};
use crate::rules::decision::{Batch, Settlement};
use crate::rules::key::KeyHash;
use crate::store::failover::outage::{SlotLocation, local_client, share};
use crate::store::key_ring;
use crate::store::unsettled::was_reset;
use crate::words::pending_reservations::ToldLater;

impl Failover {
    /// Whether reservations of this key wait for their outcome in this process, or may be made by a decision under way.
    pub(in crate::store) fn is_unsettled(&self, key: KeyHash) -> bool {
        self.local.unsettled().may_be_any(key_ring::local_key(key))
    }

    /// Settles the copy in this process. Returns what is still to be settled in Redis.
    pub(super) fn settle_here<'p>(&self, settlement: &Settlement<'p>) -> Option<Settlement<'p>> {
        match *settlement {
            Settlement::Release(key) => {
                let location = self.local_slots.give_back(key);
                if location != SlotLocation::Nowhere {
                    self.local.release(key_ring::local_key(key));
                }
                return (location == SlotLocation::InRedis).then(|| settlement.clone());
            }
            Settlement::TakeBack { key, rule, charged } => match charged.ledger {
                Ledger::Local => {
                    // It was charged at this gateway's share, if that is still the same.
                    let share = share(rule, self.shared().part());
                    self.local.take_back(key_ring::local_key(key), share.as_ref().unwrap_or(rule), charged);
                    return None;
                }
                // A unit of a lease stays spent.
                Ledger::Leased => return None,
                Ledger::Shared => {
                    let charged = Charged { moment: self.skew.here(charged.moment), ..charged.clone() };
                    self.local.take_back(key_ring::local_key(key), rule, &charged);
                }
            },
            Settlement::Keep { key, rule, items, charged } => {
                if was_reset(charged) {
                    self.local.charge_now(key_ring::local_key(key), rule, items);
                }
                if !(was_reset(charged) && charged.ledger == Ledger::Shared) {
                    return None;
                }
            }
            Settlement::Charge { key, rule, items } => self.local.charge_now(key_ring::local_key(key), rule, items),
            // Reset here only after Redis: a decision in between would be mirrored again.
            Settlement::Reset(_) => {}
            // Where Redis answers, it has the last word on whether the client was known.
            Settlement::Remember { of, most, keep, ref was_known } => {
                let (of, was_known) = (local_client(of), was_known.clone());
                self.local.settle_now(&Settlement::Remember { of, most, keep, was_known });
            }
        }
        Some(settlement.clone())
    }

    /// Redis knows this client, so this process remembers it for the next outage. Redis does not say for how long it is
    /// known.
    pub(super) fn remember_known_client(&self, local_batch: &Batch<'_>) {
        for of in &local_batch.known {
            let (most, keep, was_known) = (REMEMBERED_CLIENTS, REMEMBERED_FOR, ToldLater::default());
            self.local.settle_now(&Settlement::Remember { of: *of, most, keep, was_known });
        }
    }
}

/// How many clients of one subject are remembered because Redis knows them.
const REMEMBERED_CLIENTS: NonZeroU32 = NonZeroU32::new(16).expect("above zero");

const REMEMBERED_FOR: Duration = Duration::from_secs(3600);
