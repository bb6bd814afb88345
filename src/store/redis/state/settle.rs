//! Settles requests: one call for each hash slot, all at once.

use std::future::poll_fn;
use std::task::Poll;

use redis::Value;

use crate::rules::decision::Settlement;
use crate::rules::decision::batch::Ledger;
use crate::rules::key::KeyHash;
use crate::rules::limit::Rule;
use crate::store::redis::scripts;
use crate::store::redis::scripts::{KeySettlement, SettlementAction, invocation};
use crate::store::redis::state::store::RedisCore;
use crate::store::redis::topology::node::Failure;
use crate::store::unsettled::was_reset;
use crate::words::clock::Timestamp;

/// The answer of Redis to settlements.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SettleOutcome {
    /// Every server answered, and published its message to all gateways.
    pub complete: bool,
    /// The keys that had no room and have some again.
    pub reopened: Vec<KeyHash>,
    /// The keys that were reset, and when, by the clock of their server.
    pub resets: Vec<(KeyHash, Timestamp)>,
    /// The subjects for which a client was remembered, and whether it was a known one before.
    pub remembered: Vec<(KeyHash, bool)>,
}

impl SettleOutcome {
    /// When this key was reset; `None`: it is not known whether it was.
    pub fn reset_at(&self, key: KeyHash) -> Option<Timestamp> {
        self.resets.iter().find(|(reset, _)| *reset == key).map(|(_, moment)| *moment)
    }
}

impl RedisCore {
    /// Settles what Redis counts. A settlement without an answer is never sent again; its charge then stays.
    pub(in crate::store::redis) async fn settle(&self, settlements: &[Settlement<'_>]) -> SettleOutcome {
        let settled = self.settle_all(settlements.iter().filter_map(|settlement| self.entry(settlement))).await;
        for settlement in settlements {
            let Settlement::Remember { of, was_known, .. } = settlement else { continue };
            if let Some((_, was)) = settled.remembered.iter().find(|(subject, _)| *subject == of.subject) {
                was_known.tell(*was);
            }
        }
        settled
    }

    /// Gives slots back. A slot whose call fails ends with its lease.
    pub(in crate::store::redis) async fn release(&self, keys: impl Iterator<Item = KeyHash>) {
        self.settle_all(keys.filter_map(|key| self.released(key))).await;
    }

    /// The call that gives back the slot of a request that has ended. `None`: there is none, a lease has taken the slot.
    fn released(&self, key: KeyHash) -> Option<KeySettlement<'static>> {
        let holder = self.in_flight.give_back(key)?;
        let action = SettlementAction::Release { holder, slots: 1 };
        (!self.shared.leases.take_back_slot(key, holder)).then_some(KeySettlement { key, action })
    }

    pub(in crate::store::redis) async fn reset(&self, keys: &[KeyHash]) -> SettleOutcome {
        self.settle_all(keys.iter().map(|key| KeySettlement { key: *key, action: SettlementAction::Reset })).await
    }

    async fn settle_all<'e>(&self, entries: impl Iterator<Item = KeySettlement<'e>>) -> SettleOutcome {
        let mut slots: Vec<(u16, Vec<KeySettlement<'e>>)> = Vec::new();
        entries.for_each(|entry| add(&mut slots, self.slot(entry.key), entry));
        let mut all = SettleOutcome { complete: true, ..SettleOutcome::default() };
        for settled in join_all(slots.iter().map(|(slot, entries)| self.settle_slot(*slot, entries))).await {
            all.complete &= settled.complete;
            all.reopened.extend(settled.reopened);
            all.resets.extend(settled.resets);
            all.remembered.extend(settled.remembered);
        }
        all
    }

    /// Settles keys of one hash slot.
    pub(in crate::store::redis) async fn settle_slot(&self, slot: u16, entries: &[KeySettlement<'_>]) -> SettleOutcome {
        if entries.is_empty() {
            return SettleOutcome { complete: true, ..SettleOutcome::default() };
        }
        let names = self.shared.settings.key_names();
        let invocation = scripts::settle(names, &self.shared.channel(), &self.shared.time, entries);
        let answer: Result<Value, Failure> = self.links.call(slot, &invocation).await;
        let Some((published, moment, places)) = answer.ok().and_then(|answer| invocation::settled(&answer)) else {
            return SettleOutcome::default();
        };
        let is_remember = |entry: &KeySettlement<'_>| matches!(entry.action, SettlementAction::Remember { .. });
        let of_place = places.iter().filter_map(|place| entries.get(*place));
        let reopened = of_place.filter(|entry| !is_remember(entry)).map(|entry| entry.key);
        let all = entries.iter().enumerate().filter(|(_, entry)| is_remember(entry));
        let remembered = all.map(|(place, entry)| (entry.key, places.contains(&place)));
        let resets = entries
            .iter()
            .filter(|entry| matches!(entry.action, SettlementAction::Reset))
            .map(|entry| (entry.key, moment));
        SettleOutcome {
            complete: published,
            reopened: reopened.collect(),
            resets: resets.collect(),
            remembered: remembered.collect(),
        }
    }

    /// The settlement for Redis, if it needs one.
    fn entry<'e>(&self, settlement: &Settlement<'e>) -> Option<KeySettlement<'e>> {
        let (key, action) = match *settlement {
            Settlement::Release(key) => return self.released(key),
            Settlement::TakeBack { key, rule, charged } => {
                // Values that were there before stay, and a charge that was reset is gone.
                let is_some = !(charged.fresh.is_empty() && matches!(rule, Rule::Distinct(_)));
                let is_some = is_some && charged.ledger == Ledger::Shared && !was_reset(charged);
                (key, is_some.then_some(SettlementAction::TakeBack { rule, charged })?)
            }
            Settlement::Keep { key, rule, items, charged } => {
                let is_some = charged.ledger == Ledger::Shared && was_reset(charged);
                (key, is_some.then_some(SettlementAction::Charge { rule, items })?)
            }
            Settlement::Charge { key, rule, items } => (key, SettlementAction::Charge { rule, items }),
            Settlement::Reset(key) => (key, SettlementAction::Reset),
            Settlement::Remember { of, most, keep, .. } => {
                (of.subject, SettlementAction::Remember { client: of.client, most, keep })
            }
        };
        Some(KeySettlement { key, action })
    }
}

/// Adds an item to those of its slot.
pub(in crate::store::redis) fn add<T>(slots: &mut Vec<(u16, Vec<T>)>, slot: u16, one: T) {
    match slots.iter_mut().find(|(other, _)| *other == slot) {
        Some((_, some)) => some.push(one),
        None => slots.push((slot, vec![one])),
    }
}

// Waits for several futures at once.

/// Waits for all futures at once, and returns their outputs in the same order.
pub(in crate::store) async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut is_pending = false;
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(done) => *output = Some(done),
                Poll::Pending => is_pending = true,
            }
        }
        if is_pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_takes_as_long_as_the_longest() {
        let begin = Instant::now();
        let waits = [3, 1, 2].map(|seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            seconds
        });
        assert_eq!(join_all(waits).await, [3, 1, 2]);
        assert_eq!(begin.elapsed().as_secs(), 3);
        assert!(join_all(Vec::<std::future::Ready<()>>::new()).await.is_empty());
    }
}
