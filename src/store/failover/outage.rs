//! Decides charges that Redis does not answer: `on_failure`.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use parking_lot::Mutex;

use super::store::Failover;
use crate::rules::decision::batch::{Force, KnownClientKey};
use crate::rules::decision::{Batch, Charge, Grounds, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, OnFailure, Rate, Rates, Rule};
use crate::store::parts::Part;
use crate::store::redis::{PartialVerdicts, RedisDecision};
use crate::store::{StoreError, key_ring};

/// After so long Redis may be back, and the gateways may have divided the limits anew.
const PARTS_SETTLE: Duration = Duration::from_secs(10);

impl Failover {
    /// Decides the charges that Redis has not decided, together with those it has: all of them pass, or none.
    ///
    /// First, charges that Redis denied before the outage stay denied. Then `on_failure: deny` applies, and the charges
    /// counted in this process are decided last. If anything denies, the charges of Redis are given back.
    pub(super) fn decide_in_outage(
        &self,
        batch: &Batch<'_>,
        local_batch: &Batch<'_>,
        remembered: bool,
        decided: &mut RedisDecision,
    ) -> Result<Vec<Verdict>, StoreError> {
        let mut verdicts: PartialVerdicts = decided.verdicts.clone();
        if remembered {
            exempt(local_batch, &mut verdicts);
        }
        self.fill_denied(local_batch, &mut verdicts);
        if !is_refused(local_batch, &verdicts, |charge| charge.force == Force::Binding)
            && must_deny(local_batch, &verdicts)
        {
            let all = places(local_batch, |place, charge| decided.is_charged(place) && !charge.is_attempt());
            self.redis.give_back(batch, decided, &all);
            return Err(StoreError::Outage);
        }
        self.fill_local(local_batch, &mut verdicts);
        let mut verdicts: Vec<Verdict> =
            verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(uncounted)).collect();

        let refused: Vec<&Charge<'_>> = local_batch
            .charges
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| !verdict.passes())
            .map(|(charge, _)| charge)
            .collect();
        let passes = |charge: &Charge<'_>| !refused.iter().any(|refused| charge.passes_with(refused));
        for (place, charge) in
            local_batch.charges.iter().enumerate().filter(|(_, charge)| charge.is_slot() && passes(charge))
        {
            let verdict = &verdicts[place];
            if decided.verdicts[place].is_none() && verdict.passes() && !verdict.is_exempt {
                let location = if is_counted_here(charge) { SlotLocation::InMemory } else { SlotLocation::Nowhere };
                self.local_slots.take(batch.charges[place].key, location);
            }
        }
        let for_nothing =
            places(local_batch, |place, charge| decided.is_charged(place) && !charge.is_attempt() && !passes(charge));
        self.redis.give_back(batch, decided, &for_nothing);
        for place in for_nothing {
            verdicts[place].charged = None;
        }
        Ok(verdicts)
    }

    /// Refuses a request that this gateway is too busy to ask Redis about: Redis answers others, so that nothing is decided
    /// beside it.
    pub(super) fn refuse_overload(
        &self,
        batch: &Batch<'_>,
        decided: &mut RedisDecision,
    ) -> Result<Vec<Verdict>, StoreError> {
        let charged = places(batch, |place, charge| decided.is_charged(place) && !charge.is_attempt());
        self.redis.give_back(batch, decided, &charged);
        self.redis.shared().observer.overloaded();
        Err(StoreError::Overload)
    }

    /// Looks at the keys whose servers do not answer.
    pub(super) fn look_in_outage(
        &self,
        local_batch: &Batch<'_>,
        remembered: bool,
        mut verdicts: Vec<Option<Verdict>>,
    ) -> Result<Vec<Verdict>, StoreError> {
        if verdicts.iter().any(Option::is_none) {
            if remembered {
                exempt(local_batch, &mut verdicts);
            }
            self.fill_denied(local_batch, &mut verdicts);
            if must_deny(local_batch, &verdicts) {
                return Err(StoreError::Outage);
            }
            let part = self.shared().part();
            for (charge, verdict) in
                local_batch.charges.iter().zip(&mut verdicts).filter(|(charge, _)| is_counted_here(charge))
            {
                if verdict.is_none() {
                    *verdict = Some(match share(charge.rule, part) {
                        Some(rule) => self.local.look_at(&Charge { rule: &rule, ..charge.clone() }),
                        None => without_part(),
                    });
                }
            }
        }
        Ok(verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(uncounted)).collect())
    }

    /// Fills in the denials of Redis that have not ended.
    fn fill_denied(&self, local_batch: &Batch<'_>, verdicts: &mut PartialVerdicts) {
        let now = self.clock.now();
        for (charge, verdict) in local_batch.charges.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_none()) {
            *verdict = self.denied.known(charge, now).map(|denial| self.denied_verdict(charge, denial));
        }
    }

    /// Decides the charges that are counted in this process, at this gateway's share.
    fn fill_local(&self, local_batch: &Batch<'_>, verdicts: &mut PartialVerdicts) {
        let undecided = places(local_batch, |place, charge| verdicts[place].is_none() && is_counted_here(charge));
        if undecided.is_empty() {
            return;
        }
        let part = self.shared().part();
        let mut shares: Vec<(usize, Rule)> = Vec::with_capacity(undecided.len());
        for place in undecided {
            match share(local_batch.charges[place].rule, part) {
                Some(rule) => shares.push((place, rule)),
                None => verdicts[place] = Some(without_part()),
            }
        }
        // Two batches: charges that pass only together with a denied charge, and all others.
        for is_denied in [true, false] {
            let mut batch = Batch::default();
            let mut at = Vec::new();
            for (place, rule) in &shares {
                let charge = &local_batch.charges[*place];
                if is_denied == is_refused(local_batch, verdicts, |other| charge.passes_with(other)) {
                    // In a batch with binding charges, a shadow would be decided on its own.
                    let force = if is_denied { Force::Binding } else { charge.force };
                    batch.charges.push(Charge { rule, force, ..charge.clone() });
                    at.push(*place);
                }
            }
            let answers = if is_denied { self.local.deny_now(&batch) } else { self.local.decide_now(&batch) };
            for (place, answer) in at.into_iter().zip(answers) {
                let is_by_part = !part.is_whole() && answer.grounds == Grounds::Count;
                let grounds = if is_by_part { Grounds::Part } else { answer.grounds };
                verdicts[place] = Some(Verdict { grounds, ..answer });
            }
        }
    }
}

/// Whether the charge is counted in memory while Redis does not answer for it.
fn is_counted_here(charge: &Charge<'_>) -> bool {
    charge.on_failure == OnFailure::Local
}

/// Whether a binding limit with `on_failure: deny` has no verdict. A shadow denies no request.
fn must_deny(local_batch: &Batch<'_>, verdicts: &PartialVerdicts) -> bool {
    let mut unanswered = local_batch.charges.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_none());
    unanswered.any(|(charge, _)| charge.force == Force::Binding && charge.on_failure == OnFailure::Deny)
}

fn is_refused(local_batch: &Batch<'_>, verdicts: &PartialVerdicts, which: impl Fn(&Charge<'_>) -> bool) -> bool {
    let mut answered = local_batch.charges.iter().zip(verdicts).filter(|(charge, _)| which(charge));
    answered.any(|(_, verdict)| verdict.as_ref().is_some_and(|verdict| !verdict.passes()))
}

fn places(local_batch: &Batch<'_>, which: impl Fn(usize, &Charge<'_>) -> bool) -> Vec<usize> {
    local_batch
        .charges
        .iter()
        .enumerate()
        .filter(|(place, charge)| which(*place, charge))
        .map(|(place, _)| place)
        .collect()
}

/// Exempts a known client from the charges that do not hold for known clients.
fn exempt(local_batch: &Batch<'_>, verdicts: &mut PartialVerdicts) {
    let exempted = local_batch.charges.iter().zip(verdicts).filter(|(charge, _)| charge.unless_known);
    exempted.for_each(|(_, verdict)| _ = verdict.get_or_insert_with(Verdict::exempt));
}

/// The verdict of a limit whose part at this gateway is too small for one request.
fn without_part() -> Verdict {
    Verdict { retry_after: Some(PARTS_SETTLE), is_exempt: false, grounds: Grounds::Part, ..Verdict::exempt() }
}

fn uncounted() -> Verdict {
    Verdict { is_exempt: false, ..Verdict::exempt() }
}

// The part of a limit that this gateway grants.

/// This part of each count, rounded down. `None`: it is not enough for one request.
pub(super) fn share(rule: &Rule, part: Part) -> Option<Rule> {
    match rule {
        Rule::Concurrent(most) => Some(Rule::Concurrent(part.of(*most)?)),
        Rule::Distinct(rates) => Some(Rule::Distinct(scaled(rates, part, NonZeroU32::MIN)?)),
        Rule::Rates { algorithm, rates, cost } => {
            let algorithm = match *algorithm {
                Algorithm::TokenBucket { burst: Some(burst) } => {
                    Algorithm::TokenBucket { burst: Some(part.of(burst).filter(|burst| burst >= cost)?) }
                }
                other => other,
            };
            Some(Rule::Rates { algorithm, rates: scaled(rates, part, *cost)?, cost: *cost })
        }
    }
}

/// `None`: a rate has less than `least`.
fn scaled(rates: &Rates, part: Part, least: NonZeroU32) -> Option<Rates> {
    let scaled: Vec<Rate> = rates
        .iter()
        .map(|rate| Some(Rate { count: part.of(rate.count).filter(|count| *count >= least)?, per: rate.per }))
        .collect::<Option<_>>()?;
    Some(Rates::new(scaled).expect("the windows are as they were"))
}

// Slots that were taken during an outage, so that Redis does not know them.

/// Requests of this core whose slot is only in this process, or counted nowhere, although they will give one back.
#[derive(Debug, Default)]
pub(super) struct LocalSlots(Mutex<HashMap<KeyHash, SlotCounts>>);

#[derive(Debug, Default)]
struct SlotCounts {
    uncounted: u32,
    in_memory: u32,
}

/// Where the slot of a request is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SlotLocation {
    /// The request passed uncounted.
    Nowhere,
    InMemory,
    /// In Redis, and in memory as every charge of Redis is.
    InRedis,
}

impl LocalSlots {
    pub(super) fn take(&self, key: KeyHash, location: SlotLocation) {
        let mut keys = self.0.lock();
        match location {
            SlotLocation::Nowhere => keys.entry(key).or_default().uncounted += 1,
            SlotLocation::InMemory => keys.entry(key).or_default().in_memory += 1,
            SlotLocation::InRedis => {}
        }
    }

    /// Where a slot of this key is given back. It is not known which of several requests of a key has ended. Slots that
    /// count least go first, so that until all have ended too many slots are counted rather than too few.
    pub(super) fn give_back(&self, key: KeyHash) -> SlotLocation {
        let mut keys = self.0.lock();
        let Some(slots) = keys.get_mut(&key) else { return SlotLocation::InRedis };
        let location = if slots.uncounted > 0 {
            slots.uncounted -= 1;
            SlotLocation::Nowhere
        } else {
            slots.in_memory -= 1;
            SlotLocation::InMemory
        };
        if slots.uncounted == 0 && slots.in_memory == 0 {
            keys.remove(&key);
        }
        location
    }
}

// Batches and known clients under the keys that the tables of this process use.

/// The batch under the keys of this process.
pub(super) fn to_local_keys<'p>(batch: &Batch<'p>) -> Batch<'p> {
    let charges = batch.charges.iter();
    let charges = charges.map(|charge| Charge { key: key_ring::local_key(charge.key), ..charge.clone() });
    Batch { charges: charges.collect(), known: batch.known.iter().copied().map(local_client).collect() }
}

/// The client under the key of this process.
pub(super) fn local_client(of: KnownClientKey) -> KnownClientKey {
    KnownClientKey { subject: key_ring::local_key(of.subject), ..of }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_count_least_go_first() {
        let (local_slots, key) = (LocalSlots::default(), KeyHash(7));
        local_slots.take(key, SlotLocation::InMemory);
        local_slots.take(key, SlotLocation::Nowhere);
        local_slots.take(key, SlotLocation::InRedis);
        assert_eq!(local_slots.give_back(KeyHash(8)), SlotLocation::InRedis);
        let order = [(); 3].map(|()| local_slots.give_back(key));
        assert_eq!(order, [SlotLocation::Nowhere, SlotLocation::InMemory, SlotLocation::InRedis]);
        assert!(local_slots.0.lock().is_empty());
    }

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("above zero")
    }

    #[track_caller]
    fn check(nodes: u32, whole: (&str, u32, Option<u32>), shared: Option<(&str, Option<u32>)>) {
        let rule = |rates: &str, burst: Option<u32>| {
            let algorithm = Algorithm::TokenBucket { burst: burst.map(number) };
            Rule::Rates { algorithm, rates: rates.parse().expect(rates), cost: number(whole.1) }
        };
        let shared = shared.map(|(rates, burst)| rule(rates, burst));
        assert_eq!(share(&rule(whole.0, whole.2), Part::one_of(number(nodes))), shared);
    }

    #[test]
    fn all_shares_together_are_never_more_than_the_whole() {
        check(1, ("7/second; 9/minute", 1, None), Some(("7/second; 9/minute", None)));
        check(4, ("8/second; 9/minute", 1, Some(7)), Some(("2/second; 2/minute", Some(1))));
        let concurrent = |most| Rule::Concurrent(number(most));
        assert_eq!(share(&concurrent(20), Part::one_of(number(3))), Some(concurrent(6)));
        let distinct = |rates: &str| Rule::Distinct(rates.parse().expect(rates));
        assert_eq!(share(&distinct("9/hour"), Part::one_of(number(2))), Some(distinct("4/hour")));
    }

    #[test]
    fn a_share_of_less_than_one_request_is_none() {
        check(10, ("40/second; 40/minute", 4, None), Some(("4/second; 4/minute", None)));
        check(10, ("40/second; 39/minute", 4, None), None);
        check(10, ("40/second", 4, Some(39)), None);
        assert_eq!(share(&Rule::Concurrent(number(2)), Part::one_of(number(3))), None);
        assert_eq!(share(&Rule::Distinct("2/hour".parse().expect("rates")), Part::of_units(0)), None);
    }
}
