//! What became of requests: one script for everything in one slot, and all slots at once.

use crate::store::unsettled::was_reset;
use redis::Value;

use super::core::Core;
use super::join_all::join_all;
use crate::clock::Timestamp;
use crate::decision::Settlement;
use crate::decision::batch::Ledger;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::store::redis::scripts;
use crate::store::redis::scripts::Entry;
use crate::store::redis::scripts::What;
use crate::store::redis::scripts::answer;
use crate::store::redis::topology::links::Failure;

/// What came of settlements.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SettleOutcome {
    /// Every server did its part, and everyone could be told that listens.
    pub complete: bool,
    /// The keys that had no room, and have some again.
    pub reopened: Vec<KeyHash>,
    /// The keys that were reset, and when, by the clock of the server that did.
    pub resets: Vec<(KeyHash, Timestamp)>,
}

impl SettleOutcome {
    /// When this key was reset; `None`: it is not known whether it was.
    pub fn reset_at(&self, key: KeyHash) -> Option<Timestamp> {
        self.resets.iter().find(|(reset, _)| *reset == key).map(|(_, moment)| *moment)
    }
}

impl Core {
    /// Settles what Redis counts. A settlement without an answer is never sent again: what was charged still counts.
    pub(in crate::store::redis) async fn settle(&self, settlements: &[Settlement<'_>]) -> SettleOutcome {
        self.settle_all(settlements.iter().filter_map(|settlement| self.entry(settlement))).await
    }

    /// Gives slots in flight back. What Redis is not told of ends with its lease.
    pub(in crate::store::redis) async fn release(&self, keys: impl Iterator<Item = KeyHash>) {
        let entries = keys.filter_map(|key| {
            let holder = self.in_flight.give_back(key)?;
            Some(Entry { key, what: What::Release { holder } })
        });
        self.settle_all(entries).await;
    }

    pub(in crate::store::redis) async fn reset(&self, keys: &[KeyHash]) -> SettleOutcome {
        self.settle_all(keys.iter().map(|key| Entry { key: *key, what: What::Reset })).await
    }

    async fn settle_all<'e>(&self, entries: impl Iterator<Item = Entry<'e>>) -> SettleOutcome {
        let mut slots: Vec<(u16, Vec<Entry<'e>>)> = Vec::new();
        entries.for_each(|entry| add(&mut slots, self.slot(entry.key), entry));
        let mut all = SettleOutcome { complete: true, ..SettleOutcome::default() };
        for settled in join_all(slots.iter().map(|(slot, entries)| self.settle_slot(*slot, entries))).await {
            all.complete &= settled.complete;
            all.reopened.extend(settled.reopened);
            all.resets.extend(settled.resets);
        }
        all
    }

    /// Settles what is in one slot.
    pub(in crate::store::redis) async fn settle_slot(&self, slot: u16, entries: &[Entry<'_>]) -> SettleOutcome {
        if entries.is_empty() {
            return SettleOutcome { complete: true, ..SettleOutcome::default() };
        }
        let prefix = &self.shared.settings.key_prefix;
        let invocation = scripts::settle(prefix, &self.shared.channel(), &self.shared.time, entries);
        let answer: Result<Value, Failure> = self.links.call(slot, &invocation).await;
        let Some((told, moment, places)) = answer.ok().and_then(|answer| answer::settled(&answer)) else {
            return SettleOutcome::default();
        };
        let reopened = places.into_iter().filter_map(|place| entries.get(place)).map(|entry| entry.key);
        let resets = entries.iter().filter(|entry| matches!(entry.what, What::Reset)).map(|entry| (entry.key, moment));
        SettleOutcome { complete: told, reopened: reopened.collect(), resets: resets.collect() }
    }

    /// What is to be said to Redis, if anything.
    fn entry<'e>(&self, settlement: &Settlement<'e>) -> Option<Entry<'e>> {
        let (key, what) = match *settlement {
            Settlement::Release(key) => (key, What::Release { holder: self.in_flight.give_back(key)? }),
            Settlement::TakeBack { key, rule, charged } => {
                // Values that were there before stay; of what was reset nothing is left.
                let is_some = !(charged.fresh.is_empty() && matches!(rule, Rule::Distinct(_)));
                let is_some = is_some && charged.ledger == Ledger::Shared && !was_reset(charged);
                (key, is_some.then_some(What::TakeBack { rule, charged })?)
            }
            Settlement::Keep { key, rule, items, charged } => {
                let is_some = charged.ledger == Ledger::Shared && was_reset(charged);
                (key, is_some.then_some(What::Charge { rule, items })?)
            }
            Settlement::Charge { key, rule, items } => (key, What::Charge { rule, items }),
            Settlement::Reset { key, .. } => (key, What::Reset),
            Settlement::Remember { of, most, keep } => (of.subject, What::Remember { client: of.client, most, keep }),
        };
        Some(Entry { key, what })
    }
}

/// Adds to what is in this slot.
pub(in crate::store::redis) fn add<T>(slots: &mut Vec<(u16, Vec<T>)>, slot: u16, one: T) {
    match slots.iter_mut().find(|(other, _)| *other == slot) {
        Some((_, some)) => some.push(one),
        None => slots.push((slot, vec![one])),
    }
}
