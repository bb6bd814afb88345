//! What became of requests: told to Redis, and to the copy in this process.

use std::num::NonZeroU32;
use std::time::Duration;

use super::Failover;
use super::local_slots::Place;
use super::share::share;
use crate::decision::Batch;
use crate::decision::Settlement;
use crate::decision::batch::Charged;
use crate::decision::batch::KnownClientKey;
use crate::decision::batch::Ledger;
use crate::key::KeyHash;
use crate::store::resets;

impl Failover {
    /// Whether reservations of this key wait for their outcome in this process, or are being decided on.
    pub(in crate::store) fn is_unsettled(&self, key: KeyHash) -> bool {
        self.local.unsettled().may_be_any(resets::local_key(key))
    }

    /// Settles here what is counted here, and says what is to be settled in Redis.
    pub(super) fn settle_here<'p>(&self, settlement: &Settlement<'p>) -> Option<Settlement<'p>> {
        match *settlement {
            Settlement::Release(key) => {
                let place = self.local_slots.give_back(key);
                if place != Place::Nowhere {
                    self.local.release(resets::local_key(key));
                }
                return (place == Place::InRedis).then(|| settlement.clone());
            }
            Settlement::TakeBack { key, rule, charged } => match charged.ledger {
                Ledger::Local => {
                    self.local.take_back(resets::local_key(key), &share(rule, self.nodes), charged);
                    return None;
                }
                Ledger::Shared => {
                    let charged = Charged { moment: self.skew.here(charged.moment), ..charged.clone() };
                    self.local.take_back(resets::local_key(key), rule, &charged);
                }
            },
            Settlement::Keep { key, rule, items, charged } => {
                if charged.was_reset() {
                    self.local.charge_now(resets::local_key(key), rule, items);
                }
                if !(charged.was_reset() && charged.ledger == Ledger::Shared) {
                    return None;
                }
            }
            Settlement::Charge { key, rule, items } => self.local.charge_now(resets::local_key(key), rule, items),
            // When Redis has forgotten it: what is asked in between would be mirrored again.
            Settlement::Reset { .. } => {}
            Settlement::Remember { of, most, keep } => {
                self.local.settle_now(&Settlement::Remember { of: known_here(of), most, keep });
            }
        }
        Some(settlement.clone())
    }

    /// Redis knows this client. So does this process for a while, should Redis go away; it was not told for how long.
    pub(super) fn acquaint(&self, here: &Batch<'_>) {
        for of in &here.known {
            self.local.settle_now(&Settlement::Remember { of: *of, most: TOLD, keep: BELIEVED });
        }
    }
}

/// A client as the tables of this process know it.
pub(super) fn known_here(of: KnownClientKey) -> KnownClientKey {
    KnownClientKey { subject: resets::local_key(of.subject), ..of }
}

/// How many clients of one subject are remembered that Redis named.
const TOLD: NonZeroU32 = NonZeroU32::new(16).expect("above zero");

const BELIEVED: Duration = Duration::from_secs(3600);
