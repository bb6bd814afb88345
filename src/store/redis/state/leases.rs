//! Holds slots in flight: takes note of them, and renews the leases of those that requests hold for long.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio::time::sleep;

use super::core::Core;
use super::decided::RedisDecision;
use super::in_flight::Held;
use super::join_all::join_all;
use crate::decision::Batch;
use crate::store::redis::scripts;

impl Core {
    /// Remembers the slots that a batch has taken, by a command sent at `sent` or later.
    pub(in crate::store::redis) fn hold(self: &Arc<Self>, batch: &Batch<'_>, decided: &RedisDecision, sent: Instant) {
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
        join_all(old.iter().map(|(slot, held)| async move {
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

/// How often slots are looked through for old ones.
const LOOKED_AT: Duration = Duration::from_secs(5);
