//! Notes taken slots, and renews the leases of long requests.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;
use tokio::time::sleep;

use super::core::RedisCore;
use super::decided::RedisDecision;
use super::in_flight::HolderSlots;
use super::join_all::join_all;
use crate::decision::Batch;
use crate::key::KeyHash;
use crate::store::redis::scripts;

impl RedisCore {
    /// Notes the slots that a batch has taken, by a command sent at `sent` or later.
    pub(in crate::store::redis) fn note_slots(
        self: &Arc<Self>,
        batch: &Batch<'_>,
        decided: &RedisDecision,
        sent: Instant,
    ) {
        let slots: SmallVec<[(KeyHash, u32); 1]> = decided.slots(batch).map(|key| (key, decided.holder)).collect();
        self.note_held_slots(&slots, sent);
    }

    /// Notes slots that requests have, and the number under which each is held, by a command sent at `sent` or later.
    pub(in crate::store::redis) fn note_held_slots(self: &Arc<Self>, slots: &[(KeyHash, u32)], sent: Instant) {
        for (key, holder) in slots {
            self.in_flight.take(*key, *holder, sent);
        }
        if !slots.is_empty() && self.in_flight.needs_renewer() {
            // Not one of the tasks that the end of the process waits for: these leases end with the process.
            tokio::spawn(Arc::clone(self).renew_leases());
        }
    }

    /// Renews the leases of long requests, until no request has a slot.
    async fn renew_leases(self: Arc<Self>) {
        while !self.in_flight.is_empty() {
            sleep(RENEWAL_INTERVAL).await;
            self.renew_due(Instant::now()).await;
        }
    }

    /// Renews the leases that are due now.
    async fn renew_due(&self, now: Instant) {
        let due = self.by_slot(&self.in_flight.due_for_renewal(now));
        join_all(due.iter().map(|(slot, slots)| async move {
            if self.links.call(*slot, &self.leases(slots).renew()).await.is_ok() {
                self.in_flight.renewed(slots.0, &slots.1, now);
            }
        }))
        .await;
    }

    fn by_slot(&self, all: &[HolderSlots]) -> Vec<(u16, HolderSlots)> {
        let mut by_slot: Vec<(u16, HolderSlots)> = Vec::new();
        for (holder, keys) in all {
            for key in keys {
                let slot = self.slot(*key);
                match by_slot.iter_mut().find(|(other, slots)| *other == slot && slots.0 == *holder) {
                    Some((_, slots)) => slots.1.push(*key),
                    None => by_slot.push((slot, (*holder, vec![*key]))),
                }
            }
        }
        by_slot
    }

    fn leases<'h>(&'h self, (holder, keys): &'h HolderSlots) -> scripts::SlotLeases<'h> {
        let names = self.shared.settings.key_names();
        scripts::SlotLeases { names, holder: *holder, keys }
    }
}

/// How often the task looks for leases that are due.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
