//! The slots that requests of one core have taken in Redis, and the leases of these slots.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::{Instant, sleep};

use crate::rules::decision::Batch;
use crate::rules::key::KeyHash;
use crate::store::leases::ReturnedLease;
use crate::store::redis::scripts;
use crate::store::redis::state::decided::RedisDecision;
use crate::store::redis::state::settle::join_all;
use crate::store::redis::state::store::RedisCore;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::shared::SharedRedis;

/// A third of a lease: two renewals may fail.
const RENEWED_AFTER: Duration = Duration::from_secs(10);

/// The slots that requests of this core have taken in Redis.
///
/// A slot has a lease, so that the slots of a dead gateway come back. The leases of requests that take longer than
/// [`RENEWED_AFTER`] are renewed; other requests only give their slot back.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct InFlightSlots(Mutex<KeySlots>);

#[derive(Debug, Default)]
struct KeySlots {
    /// The slots of each key, the oldest first.
    by_key: HashMap<KeyHash, SmallVec<[LeasedSlot; 1]>>,
    /// A task renews the leases.
    has_renewer: bool,
}

#[derive(Clone, Copy, Debug)]
struct LeasedSlot {
    holder: u32,
    /// The lease began at this moment or later.
    leased: Instant,
}

/// The number of a holder, and the keys of its slots, each key once for each slot.
pub(in crate::store::redis) type HolderSlots = (u32, Vec<KeyHash>);

impl InFlightSlots {
    /// Notes a slot that was taken by a command sent at `sent`.
    pub(in crate::store::redis) fn take(&self, key: KeyHash, holder: u32, sent: Instant) {
        self.0.lock().by_key.entry(key).or_default().push(LeasedSlot { holder, leased: sent });
    }

    /// Removes the oldest slot of a key, because a request has ended, and returns its holder. `None`: there is no slot.
    pub(in crate::store::redis) fn give_back(&self, key: KeyHash) -> Option<u32> {
        let mut slots = self.0.lock();
        let of_key = slots.by_key.get_mut(&key)?;
        let slot = of_key.remove(0);
        if of_key.is_empty() {
            slots.by_key.remove(&key);
        }
        Some(slot.holder)
    }

    /// Removes the newest slot that was taken under `holder`.
    pub(in crate::store::redis) fn drop_newest(&self, key: KeyHash, holder: u32) -> bool {
        let mut slots = self.0.lock();
        let Some(of_key) = slots.by_key.get_mut(&key) else { return false };
        let Some(newest) = of_key.iter().rposition(|slot| slot.holder == holder) else { return false };
        of_key.remove(newest);
        if of_key.is_empty() {
            slots.by_key.remove(&key);
        }
        true
    }

    /// The slots whose lease is due for renewal.
    pub(in crate::store::redis) fn due_for_renewal(&self, now: Instant) -> Vec<HolderSlots> {
        let mut due: Vec<HolderSlots> = Vec::new();
        for (key, of_key) in &self.0.lock().by_key {
            for slot in of_key.iter().filter(|slot| now.saturating_duration_since(slot.leased) >= RENEWED_AFTER) {
                add(&mut due, slot.holder, *key);
            }
        }
        due
    }

    /// Notes that the leases of all slots of `holder` under these keys began again at `sent`.
    pub(in crate::store::redis) fn renewed(&self, holder: u32, keys: &[KeyHash], sent: Instant) {
        let mut slots = self.0.lock();
        for key in keys {
            let of_key = slots.by_key.get_mut(key).into_iter().flatten();
            of_key.filter(|slot| slot.holder == holder).for_each(|slot| slot.leased = slot.leased.max(sent));
        }
    }

    /// Whether the caller is to start a task that renews the leases. Called after a slot was taken.
    pub(in crate::store::redis) fn needs_renewer(&self) -> bool {
        let mut slots = self.0.lock();
        !std::mem::replace(&mut slots.has_renewer, true)
    }

    /// Whether there are no slots any more. Then the task that renews the leases ends.
    pub(in crate::store::redis) fn is_empty(&self) -> bool {
        let mut slots = self.0.lock();
        slots.has_renewer = !slots.by_key.is_empty();
        !slots.has_renewer
    }
}

fn add(all: &mut Vec<HolderSlots>, holder: u32, key: KeyHash) {
    match all.iter_mut().find(|(other, _)| *other == holder) {
        Some((_, keys)) => keys.push(key),
        None => all.push((holder, vec![key])),
    }
}

// Notes taken slots, and renews the leases of long requests.

/// How often the task looks for leases that are due.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

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

impl RedisCore {
    /// Gives back all leases of this process, because it ends.
    pub(in crate::store::redis) async fn return_leases(&self) {
        give_back(&self.shared, &self.links, &self.shared.leases.take_all()).await;
    }
}

// Gives back leases whose units were not spent.

/// How often leases are looked at while there are any.
const ROUND: Duration = Duration::from_millis(100);

/// Gives back what is left of leases that have ended, for ever: one task for the process.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let links = Links::unobserved(&shared);
    loop {
        shared.leases.begun().await;
        sleep(ROUND).await;
        give_back(&shared, &links, &shared.leases.take_ended()).await;
    }
}

/// A call without an answer is not repeated: the units then count until the lease would have ended, and a window longer.
async fn give_back(shared: &SharedRedis, links: &Links, returned: &[ReturnedLease]) {
    let (names, channel) = (shared.settings.key_names(), shared.channel());
    join_all(returned.iter().map(|lease| {
        let invocation = scripts::return_lease(names, &channel, &shared.time, lease);
        let slot = links.slot(names.name(lease.key).as_bytes());
        async move { drop(links.call_best_effort(slot, &invocation).await) }
    }))
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u128) -> KeyHash {
        KeyHash(number)
    }

    #[test]
    fn a_slot_is_given_back_once_under_the_number_it_was_taken_under() {
        let (in_flight, now) = (InFlightSlots::default(), Instant::now());
        in_flight.take(key(1), 100, now);
        in_flight.take(key(1), 200, now);
        in_flight.take(key(2), 100, now);
        assert_eq!(in_flight.give_back(key(1)), Some(100));
        assert_eq!(in_flight.give_back(key(1)), Some(200));
        assert_eq!(in_flight.give_back(key(1)), None);
        assert_eq!(in_flight.give_back(key(3)), None);
        assert!(
            !in_flight.drop_newest(key(2), 200)
                && in_flight.drop_newest(key(2), 100)
                && !in_flight.drop_newest(key(2), 100)
        );
        assert!(in_flight.0.lock().by_key.is_empty());
    }

    #[test]
    fn only_slots_taken_long_ago_are_renewed() {
        let (in_flight, begin) = (InFlightSlots::default(), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        in_flight.take(key(1), 100, begin);
        in_flight.take(key(1), 100, begin);
        in_flight.take(key(2), 100, after(4));
        assert_eq!(in_flight.due_for_renewal(after(9)), []);
        assert_eq!(in_flight.due_for_renewal(after(10)), [(100, vec![key(1), key(1)])]);
        in_flight.renewed(100, &[key(1)], after(10));
        assert_eq!(in_flight.due_for_renewal(after(15)), [(100, vec![key(2)])]);
        in_flight.renewed(300, &[key(2)], after(15));
        assert_eq!(in_flight.due_for_renewal(after(15)), [(100, vec![key(2)])]);
    }

    #[test]
    fn one_task_renews_the_leases_while_there_are_slots() {
        let in_flight = InFlightSlots::default();
        in_flight.take(key(1), 100, Instant::now());
        assert!(in_flight.needs_renewer());
        assert!(!in_flight.needs_renewer());
        assert!(!in_flight.is_empty());
        in_flight.give_back(key(1));
        assert!(in_flight.is_empty());
        assert!(in_flight.needs_renewer());
    }
}
