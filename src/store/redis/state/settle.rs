//! Settles requests: one call for each hash slot, all at once.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use redis::Value;
use tokio::time::sleep;

use crate::rules::decision::Settlement;
use crate::rules::decision::batch::Ledger;
use crate::rules::key::KeyHash;
use crate::rules::limit::Rule;
use crate::store::redis::scripts;
use crate::store::redis::scripts::invocation::Invocation;
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
    /// Settles what Redis counts. A settlement that Redis may have run is never sent again; its charge then stays. One that it
    /// surely has not run is sent when it is back.
    pub(in crate::store::redis) async fn settle(self: &Arc<Self>, settlements: &[Settlement<'_>]) -> SettleOutcome {
        let settled = self.settle_all(settlements.iter().filter_map(|settlement| self.entry(settlement))).await;
        for settlement in settlements {
            let Settlement::Remember { of, was_known, .. } = settlement else { continue };
            if let Some((_, was)) = settled.remembered.iter().find(|(subject, _)| *subject == of.subject) {
                was_known.tell(*was);
            }
        }
        settled
    }

    /// Gives slots back. A slot whose call has no answer ends with its lease.
    pub(in crate::store::redis) async fn release(self: &Arc<Self>, keys: impl Iterator<Item = KeyHash>) {
        self.settle_all(keys.filter_map(|key| self.released(key))).await;
    }

    /// The call that gives back the slot of a request that has ended. `None`: there is none, a lease has taken the slot.
    fn released(&self, key: KeyHash) -> Option<KeySettlement<'static>> {
        let holder = self.in_flight.give_back(key)?;
        let action = SettlementAction::Release { holder, slots: 1 };
        (!self.shared.leases.take_back_slot(key, holder)).then_some(KeySettlement { key, action })
    }

    pub(in crate::store::redis) async fn reset(self: &Arc<Self>, keys: &[KeyHash]) -> SettleOutcome {
        self.settle_all(keys.iter().map(|key| KeySettlement { key: *key, action: SettlementAction::Reset })).await
    }

    async fn settle_all<'e>(self: &Arc<Self>, entries: impl Iterator<Item = KeySettlement<'e>>) -> SettleOutcome {
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
    pub(in crate::store::redis) async fn settle_slot(
        self: &Arc<Self>,
        slot: u16,
        entries: &[KeySettlement<'_>],
    ) -> SettleOutcome {
        if entries.is_empty() {
            return SettleOutcome { complete: true, ..SettleOutcome::default() };
        }
        let answer: Result<Value, Failure> = self.links.call(slot, &self.settlement(entries)).await;
        if let Err(Failure::Open | Failure::Refused) = answer {
            self.settle_later(slot, entries);
        }
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

    fn settlement(&self, entries: &[KeySettlement<'_>]) -> Invocation {
        scripts::settle(self.shared.settings.key_names(), &self.shared.channel(), &self.shared.time, entries)
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

// Settlements that Redis surely has not run, because it was away.

/// So many settlements wait. Of others the charge stays.
const MOST_UNSENT: usize = 10_000;

/// So often one is sent. A server that is up and refuses it may go on to do so.
const TRIES: u32 = 10;

/// How often it is looked whether their servers are back.
const ROUND: Duration = Duration::from_millis(100);

/// Settlements that are sent when their servers are back.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct UnsentSettlements(Mutex<Unsent>);

#[derive(Debug, Default)]
struct Unsent {
    waiting: Vec<UnsentSettlement>,
    /// A task sends them.
    has_sender: bool,
}

#[derive(Debug)]
struct UnsentSettlement {
    slot: u16,
    invocation: Invocation,
    tries: u32,
}

impl UnsentSettlements {
    /// Returns whether the caller is to start a task that sends them.
    fn add(&self, settlement: UnsentSettlement) -> bool {
        let mut unsent = self.0.lock();
        if unsent.waiting.len() >= MOST_UNSENT {
            return false;
        }
        unsent.waiting.push(settlement);
        !mem::replace(&mut unsent.has_sender, true)
    }

    /// Takes all. `None`: there are none, and the task that sends them ends.
    fn take(&self) -> Option<Vec<UnsentSettlement>> {
        let mut unsent = self.0.lock();
        unsent.has_sender = !unsent.waiting.is_empty();
        unsent.has_sender.then(|| mem::take(&mut unsent.waiting))
    }

    fn put_back(&self, settlement: UnsentSettlement) {
        self.0.lock().waiting.push(settlement);
    }
}

impl RedisCore {
    /// Has these sent when the server is back, without those that reset a key: they would reset what came meanwhile, too.
    fn settle_later(self: &Arc<Self>, slot: u16, entries: &[KeySettlement<'_>]) {
        let is_late = |entry: &&KeySettlement<'_>| !matches!(entry.action, SettlementAction::Reset);
        let later: Vec<_> = entries.iter().filter(is_late).copied().collect();
        if later.is_empty() {
            return;
        }
        let settlement = UnsentSettlement { slot, invocation: self.settlement(&later), tries: 0 };
        if self.unsent.add(settlement) {
            // Not one of the tasks that the end of the process waits for.
            tokio::spawn(Arc::clone(self).send_unsent());
        }
    }

    async fn send_unsent(self: Arc<Self>) {
        while let Some(waiting) = self.unsent.take() {
            for settlement in waiting {
                self.try_again(settlement).await;
            }
            sleep(ROUND).await;
        }
    }

    async fn try_again(&self, settlement: UnsentSettlement) {
        let UnsentSettlement { slot, ref invocation, tries } = settlement;
        if !self.shared.topology.node(slot).is_some_and(|node| node.is_up()) {
            self.unsent.put_back(settlement);
        } else if let Err(Failure::Open | Failure::Refused) = self.links.call(slot, invocation).await
            && tries < TRIES
        {
            self.unsent.put_back(UnsentSettlement { tries: tries + 1, ..settlement });
        }
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
    use tokio::time::Instant;

    use super::*;
    use crate::store::redis::scripts::Script;

    #[test]
    fn one_task_sends_what_waits_and_no_more_waits_than_may() {
        static SCRIPT: Script = Script { text: String::new(), sha: String::new() };
        let settlement = || {
            let invocation = Invocation { script: &SCRIPT, command: redis::Cmd::new() };
            UnsentSettlement { slot: 0, invocation, tries: 0 }
        };
        let unsent = UnsentSettlements::default();
        assert!(unsent.add(settlement()));
        assert!((1..MOST_UNSENT).all(|_| !unsent.add(settlement())));
        assert!(!unsent.add(settlement()));
        assert_eq!(unsent.take().map(|waiting| waiting.len()), Some(MOST_UNSENT));
        // It goes on with what comes meanwhile, and with what could not be sent.
        assert!(!unsent.add(settlement()));
        unsent.put_back(settlement());
        assert_eq!(unsent.take().map(|waiting| waiting.len()), Some(2));
        assert!(unsent.take().is_none());
        // It has ended: what comes later starts another.
        assert!(unsent.add(settlement()));
    }

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
