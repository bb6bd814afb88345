//! Decides charges that Redis does not answer: `on_failure`.

use std::time::Duration;

use super::local_slots::SlotLocation;
use super::share::share;
use super::store::Failover;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::limit::OnFailure;
use crate::limit::Rule;
use crate::store::StoreError;
use crate::store::redis::RedisDecision;

/// The verdicts that are known so far, in the order of the batch.
type Verdicts = Vec<Option<Verdict>>;

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
        let mut verdicts: Verdicts = decided.verdicts.clone();
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
    fn fill_denied(&self, local_batch: &Batch<'_>, verdicts: &mut Verdicts) {
        let now = self.clock.now();
        for (charge, verdict) in local_batch.charges.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_none()) {
            *verdict = self.denied.known(charge, now).map(|denial| self.denied_verdict(charge, denial));
        }
    }

    /// Decides the charges that are counted in this process, at this gateway's share.
    fn fill_local(&self, local_batch: &Batch<'_>, verdicts: &mut Verdicts) {
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
            at.into_iter().zip(answers).for_each(|(place, answer)| verdicts[place] = Some(answer));
        }
    }
}

/// Whether the charge is counted in memory while Redis does not answer for it.
fn is_counted_here(charge: &Charge<'_>) -> bool {
    charge.on_failure == OnFailure::Local
}

/// Whether a binding limit with `on_failure: deny` has no verdict. A shadow denies no request.
fn must_deny(local_batch: &Batch<'_>, verdicts: &Verdicts) -> bool {
    let mut unanswered = local_batch.charges.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_none());
    unanswered.any(|(charge, _)| charge.force == Force::Binding && charge.on_failure == OnFailure::Deny)
}

fn is_refused(local_batch: &Batch<'_>, verdicts: &Verdicts, which: impl Fn(&Charge<'_>) -> bool) -> bool {
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
fn exempt(local_batch: &Batch<'_>, verdicts: &mut Verdicts) {
    let exempted = local_batch.charges.iter().zip(verdicts).filter(|(charge, _)| charge.unless_known);
    exempted.for_each(|(_, verdict)| _ = verdict.get_or_insert_with(Verdict::exempt));
}

/// Of a limit of which this gateway has not enough for one request.
fn without_part() -> Verdict {
    Verdict { retry_after: Some(PARTS_SETTLE), is_exempt: false, ..Verdict::exempt() }
}

/// After so long Redis may be back, and the gateways may have divided the limits anew.
const PARTS_SETTLE: Duration = Duration::from_secs(10);

fn uncounted() -> Verdict {
    Verdict { is_exempt: false, ..Verdict::exempt() }
}
