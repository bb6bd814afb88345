//! Settles requests: one call for each hash slot, all at once.

use crate::store::unsettled::was_reset;
use redis::Value;

use super::core::RedisCore;
use super::join_all::join_all;
use crate::clock::Timestamp;
use crate::decision::Settlement;
use crate::decision::batch::Ledger;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::store::redis::scripts;
use crate::store::redis::scripts::KeySettlement;
use crate::store::redis::scripts::SettlementAction;
use crate::store::redis::scripts::answer;
use crate::store::redis::topology::failure::Failure;

/// What Redis answered to settlements.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SettleOutcome {
    /// Every server answered, and published its message to all gateways.
    pub complete: bool,
    /// The keys that had no room and have some again.
    pub reopened: Vec<KeyHash>,
    /// The keys that were reset, and when, by the clock of their server.
    pub resets: Vec<(KeyHash, Timestamp)>,
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
        self.settle_all(settlements.iter().filter_map(|settlement| self.entry(settlement))).await
    }

    /// Gives slots back. A slot whose call fails ends with its lease.
    pub(in crate::store::redis) async fn release(&self, keys: impl Iterator<Item = KeyHash>) {
        self.settle_all(keys.filter_map(|key| self.released(key))).await;
    }

    /// What is to be given back of a slot whose request has ended. `None`: nothing, a lease has taken it.
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
        let Some((published, moment, places)) = answer.ok().and_then(|answer| answer::settled(&answer)) else {
            return SettleOutcome::default();
        };
        let reopened = places.into_iter().filter_map(|place| entries.get(place)).map(|entry| entry.key);
        let resets = entries
            .iter()
            .filter(|entry| matches!(entry.action, SettlementAction::Reset))
            .map(|entry| (entry.key, moment));
        SettleOutcome { complete: published, reopened: reopened.collect(), resets: resets.collect() }
    }

    /// What is to be settled in Redis, if anything.
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
            Settlement::Remember { of, most, keep } => {
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
