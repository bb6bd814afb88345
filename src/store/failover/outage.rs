//! What becomes of charges that Redis does not answer: `on_failure`.

use super::Failover;
use super::local_slots::Place;
use super::share::share;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::limit::OnFailure;
use crate::limit::Rule;
use crate::store::StoreError;
use crate::store::redis::RedisDecision;

/// What is known of each charge of a batch so far.
type Verdicts = Vec<Option<Verdict>>;

impl Failover {
    /// Decides what Redis has not, together with what it has: all or none of it passes.
    ///
    /// What Redis refused before it went away stays refused. Then `deny` stands before everything, and what is counted
    /// here is decided last. Whatever denies, Redis is given back what it charged.
    pub(super) fn decide_in_outage(
        &self,
        batch: &Batch<'_>,
        here: &Batch<'_>,
        remembered: bool,
        decided: &mut RedisDecision,
    ) -> Result<Vec<Verdict>, StoreError> {
        let mut verdicts: Verdicts = decided.verdicts.clone();
        if remembered {
            exempt(here, &mut verdicts);
        }
        self.fill_known(here, &mut verdicts);
        if !is_refused(here, &verdicts, |charge| charge.force == Force::Binding) && must_deny(here, &verdicts) {
            let all = places(here, |place, charge| decided.is_charged(place) && !charge.is_attempt());
            self.redis.give_back(batch, decided, &all);
            return Err(StoreError::Outage);
        }
        self.fill_local(here, &mut verdicts);
        let mut verdicts: Vec<Verdict> =
            verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(uncounted)).collect();

        let refused: Vec<&Charge<'_>> = here
            .charges
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| !verdict.passes())
            .map(|(charge, _)| charge)
            .collect();
        let passes = |charge: &Charge<'_>| !refused.iter().any(|refused| charge.passes_with(refused));
        for (place, charge) in here.charges.iter().enumerate().filter(|(_, charge)| charge.is_slot() && passes(charge))
        {
            let verdict = &verdicts[place];
            if decided.verdicts[place].is_none() && verdict.passes() && !verdict.is_exempt {
                let held = if is_counted_here(charge) { Place::InMemory } else { Place::Nowhere };
                self.local_slots.take(batch.charges[place].key, held);
            }
        }
        let for_nothing =
            places(here, |place, charge| decided.is_charged(place) && !charge.is_attempt() && !passes(charge));
        self.redis.give_back(batch, decided, &for_nothing);
        for place in for_nothing {
            verdicts[place].charged = None;
        }
        Ok(verdicts)
    }

    /// Where keys stand whose servers do not answer.
    pub(super) fn look_in_outage(
        &self,
        here: &Batch<'_>,
        remembered: bool,
        mut verdicts: Vec<Option<Verdict>>,
    ) -> Result<Vec<Verdict>, StoreError> {
        if verdicts.iter().any(Option::is_none) {
            if remembered {
                exempt(here, &mut verdicts);
            }
            self.fill_known(here, &mut verdicts);
            if must_deny(here, &verdicts) {
                return Err(StoreError::Outage);
            }
            for (charge, verdict) in
                here.charges.iter().zip(&mut verdicts).filter(|(charge, _)| is_counted_here(charge))
            {
                if verdict.is_none() {
                    let rule = share(charge.rule, self.nodes);
                    *verdict = Some(self.local.look_at(&Charge { rule: &rule, ..charge.clone() }));
                }
            }
        }
        Ok(verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(uncounted)).collect())
    }

    /// What Redis refused until a moment that has not come.
    fn fill_known(&self, here: &Batch<'_>, verdicts: &mut Verdicts) {
        let now = self.clock.now();
        for (charge, verdict) in here.charges.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_none()) {
            *verdict = self.denied.known(charge, now).map(|denial| self.denied_verdict(charge, denial));
        }
    }

    /// Decides here what is counted here, at this gateway's share.
    fn fill_local(&self, here: &Batch<'_>, verdicts: &mut Verdicts) {
        let asked = places(here, |place, charge| verdicts[place].is_none() && is_counted_here(charge));
        if asked.is_empty() {
            return;
        }
        let rules: Vec<Rule> = asked.iter().map(|place| share(here.charges[*place].rule, self.nodes)).collect();
        // Two batches: what is denied already by something it passes together with, and what is not.
        for is_denied in [true, false] {
            let mut batch = Batch::default();
            let mut at = Vec::new();
            for (place, rule) in asked.iter().zip(&rules) {
                let charge = &here.charges[*place];
                if is_denied == is_refused(here, verdicts, |other| charge.passes_with(other)) {
                    // Beside what binds, a shadow would be decided alone.
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

/// Whether a limit that lets nothing pass unasked has no answer. A shadow applies to nobody.
fn must_deny(here: &Batch<'_>, verdicts: &Verdicts) -> bool {
    let mut unanswered = here.charges.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_none());
    unanswered.any(|(charge, _)| charge.force == Force::Binding && charge.on_failure == OnFailure::Deny)
}

fn is_refused(here: &Batch<'_>, verdicts: &Verdicts, which: impl Fn(&Charge<'_>) -> bool) -> bool {
    let mut answered = here.charges.iter().zip(verdicts).filter(|(charge, _)| which(charge));
    answered.any(|(_, verdict)| verdict.as_ref().is_some_and(|verdict| !verdict.passes()))
}

fn places(here: &Batch<'_>, which: impl Fn(usize, &Charge<'_>) -> bool) -> Vec<usize> {
    here.charges.iter().enumerate().filter(|(place, charge)| which(*place, charge)).map(|(place, _)| place).collect()
}

/// What does not hold for the client, which is known.
fn exempt(here: &Batch<'_>, verdicts: &mut Verdicts) {
    let concerned = here.charges.iter().zip(verdicts).filter(|(charge, _)| charge.unless_known);
    concerned.for_each(|(_, verdict)| _ = verdict.get_or_insert_with(Verdict::exempt));
}

fn uncounted() -> Verdict {
    Verdict { is_exempt: false, ..Verdict::exempt() }
}
