//! All or none across slots: reserved in order, given back when a later one denies.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;
use tokio::time::timeout_at;

use super::Core;
use super::Decided;
use super::Mode;
use super::answer;
use super::is_charged;
use super::script;
use super::script::Group;
use super::script::Purpose;
use super::together::together;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::key::KeyHash;
use crate::limit::Algorithm;
use crate::limit::Rule;
use crate::limit::state::Standings;
use crate::store::resets;

/// The charges of a batch whose keys are in one slot: what one script decides in one step.
#[derive(Debug)]
pub(super) struct Part<'b, 'p> {
    slot: u16,
    /// Where they stand in the batch.
    places: SmallVec<[usize; 4]>,
    charges: SmallVec<[&'b Charge<'p>; 4]>,
}

/// A batch in parts, by ascending slot.
pub(super) type Parts<'b, 'p> = SmallVec<[Part<'b, 'p>; 1]>;

/// What is known of each charge of a batch.
type Verdicts = Vec<Option<Verdict>>;

impl Core {
    pub(super) fn is_one_slot(&self, batch: &Batch<'_>) -> bool {
        self.shared.settings.mode != Mode::Cluster || batch.charges.len() <= 1 || self.parts(batch).len() <= 1
    }

    pub(super) fn parts<'b, 'p>(&self, batch: &'b Batch<'p>) -> Parts<'b, 'p> {
        split(batch, |key| self.slot(key))
    }

    pub(super) fn slot(&self, key: KeyHash) -> u16 {
        match self.shared.settings.mode {
            Mode::Cluster => self.links.slot(script::name(&self.shared.settings.key_prefix, key).as_bytes()),
            Mode::Single | Mode::Sentinel => 0,
        }
    }

    pub(super) async fn decide(self: &Arc<Self>, batch: &Batch<'_>) -> Decided {
        self.decide_parts(batch, &self.parts(batch)).await
    }

    pub(super) async fn decide_parts(self: &Arc<Self>, batch: &Batch<'_>, parts: &[Part<'_, '_>]) -> Decided {
        let holder = self.shared.holder();
        let verdicts = match parts {
            [] => Vec::new(),
            [only] => match self.ask(only, Purpose::Decide, holder).await {
                Some(verdicts) => verdicts.into_iter().map(Some).collect(),
                None => vec![None; batch.charges.len()],
            },
            _ => Box::pin(self.reserve(batch, parts, holder)).await,
        };
        Decided { verdicts, holder }
    }

    pub(super) async fn look(&self, batch: &Batch<'_>) -> Vec<Option<Verdict>> {
        let parts = self.parts(batch);
        let answers = together(parts.iter().map(|part| self.ask(part, Purpose::Look, 0))).await;
        let mut verdicts: Verdicts = vec![None; batch.charges.len()];
        parts.iter().zip(answers).for_each(|(part, answer)| fill(&mut verdicts, part, answer));
        verdicts
    }

    /// Parts that bind are decided one after the other, until one denies; those of shadows alone meanwhile.
    ///
    /// A part whose server does not answer is left out, whatever came of it there: what may have been charged counts
    /// as charged.
    async fn reserve(self: &Arc<Self>, batch: &Batch<'_>, parts: &[Part<'_, '_>], holder: u32) -> Verdicts {
        let deadline = Instant::now() + self.shared.settings.timeout;
        let (binding, shadows): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.binds());
        let in_order = async {
            let mut verdicts: Verdicts = vec![None; batch.charges.len()];
            for (position, part) in binding.iter().enumerate() {
                let answer = self.ask_until(deadline, part, Purpose::Decide, holder).await;
                fill(&mut verdicts, part, answer);
                if !is_denied(batch, &verdicts, Force::Binding) {
                    continue;
                }
                // The others are given back what they reserved, and asked whether they deny as well, all at once.
                let later = &binding[position + 1..];
                let returned = to_return(batch, &verdicts);
                let give_back = timeout_at(deadline, self.give_back(parts, &verdicts, &returned, holder));
                let asked = together(later.iter().map(|part| self.ask_until(deadline, part, Purpose::Deny, holder)));
                let (_, answers) = tokio::join!(give_back, asked);
                later.iter().zip(answers).for_each(|(part, answer)| fill(&mut verdicts, part, answer));
                take_out(batch, &mut verdicts, &returned);
                break;
            }
            verdicts
        };
        let beside = together(shadows.iter().map(|part| self.ask_until(deadline, part, Purpose::Decide, holder)));
        let (mut verdicts, answers) = tokio::join!(in_order, beside);
        shadows.iter().zip(answers).for_each(|(part, answer)| fill(&mut verdicts, part, answer));
        // Several keys of one shadow pass together as well.
        let returned = to_return(batch, &verdicts);
        if !returned.is_empty() {
            drop(timeout_at(deadline, self.give_back(parts, &verdicts, &returned, holder)).await);
            take_out(batch, &mut verdicts, &returned);
        }
        verdicts
    }

    async fn ask_until(
        self: &Arc<Self>,
        deadline: Instant,
        part: &Part<'_, '_>,
        purpose: Purpose,
        holder: u32,
    ) -> Option<Vec<Verdict>> {
        if Instant::now() >= deadline {
            return None;
        }
        timeout_at(deadline, self.ask(part, purpose, holder)).await.ok().flatten()
    }

    async fn ask(&self, part: &Part<'_, '_>, purpose: Purpose, holder: u32) -> Option<Vec<Verdict>> {
        let invocation = self.group(part, holder).invocation(purpose);
        let answer = self.links.call(part.slot, &invocation).await.ok()?;
        answer::read(&answer, &part.charges)
    }

    /// Gives back what was charged at these places, each server once. What comes of it is not known where a server
    /// does not answer, and it is not sent again.
    pub(super) async fn give_back(
        self: &Arc<Self>,
        parts: &[Part<'_, '_>],
        verdicts: &[Option<Verdict>],
        places: &[usize],
        holder: u32,
    ) {
        together(parts.iter().map(|part| self.give_back_part(part, verdicts, places, holder))).await;
    }

    async fn give_back_part(
        self: &Arc<Self>,
        part: &Part<'_, '_>,
        verdicts: &[Option<Verdict>],
        places: &[usize],
        holder: u32,
    ) {
        let mut returned = Part { slot: part.slot, places: SmallVec::new(), charges: SmallVec::new() };
        let mut moments: SmallVec<[Timestamp; 4]> = SmallVec::new();
        let mut freed = Vec::new();
        for (place, charge) in part.places.iter().zip(&part.charges).filter(|(place, _)| places.contains(place)) {
            let Some(Verdict { charged: Some(charged), standings, .. }) = &verdicts[*place] else { continue };
            returned.places.push(*place);
            returned.charges.push(charge);
            moments.push(charged.moment);
            if is_spent(charge.rule, standings) {
                freed.push(charge.key);
            }
        }
        if returned.charges.is_empty() {
            return;
        }
        let invocation = self.group(&returned, holder).give_back(&moments);
        let is_returned = self.links.call(part.slot, &invocation).await.is_ok();
        if is_returned && !freed.is_empty() {
            // Whoever asked while this was reserved was told to stay away for longer than is true.
            let core = Arc::clone(self);
            self.tasks.spawn(async move { core.publish(&freed).await });
        }
    }

    /// Forgets keys, and then tells every gateway.
    pub(super) async fn forget(&self, keys: &[KeyHash]) -> bool {
        let mut slots: Vec<(u16, Vec<KeyHash>)> = Vec::new();
        for key in keys {
            let slot = self.slot(*key);
            match slots.iter_mut().find(|(other, _)| *other == slot) {
                Some((_, keys)) => keys.push(*key),
                None => slots.push((slot, vec![*key])),
            }
        }
        let prefix = &self.shared.settings.key_prefix;
        let forgotten =
            together(slots.iter().map(|(slot, keys)| async move {
                self.links.call(*slot, &script::forget(prefix, keys)).await.is_ok()
            }));
        let is_forgotten = forgotten.await.into_iter().all(|is_forgotten| is_forgotten);
        // Told afterwards: what is asked in between would be denied for what is about to be forgotten.
        self.publish(keys).await && is_forgotten
    }

    async fn publish(&self, keys: &[KeyHash]) -> bool {
        self.links.publish(&self.shared.channel(), &resets::message(keys)).await.is_ok()
    }

    fn group<'g, 'p>(&'g self, part: &'g Part<'_, 'p>, holder: u32) -> Group<'g, 'p> {
        let prefix = &self.shared.settings.key_prefix;
        Group { prefix, time: &self.shared.time, holder, charges: &part.charges }
    }
}

impl Part<'_, '_> {
    fn binds(&self) -> bool {
        self.charges.iter().any(|charge| charge.force == Force::Binding)
    }
}

/// A batch by the slots of its keys, in ascending order, so that gateways reserve in the same one.
pub(super) fn split<'b, 'p>(batch: &'b Batch<'p>, slot: impl Fn(KeyHash) -> u16) -> Parts<'b, 'p> {
    let mut parts = Parts::new();
    for (place, charge) in batch.charges.iter().enumerate() {
        let slot = slot(charge.key);
        let known = parts.iter().position(|part: &Part<'_, '_>| part.slot == slot);
        if known.is_none() {
            parts.push(Part { slot, places: SmallVec::new(), charges: SmallVec::new() });
        }
        let at = known.unwrap_or(parts.len() - 1);
        let part = &mut parts[at];
        part.places.push(place);
        part.charges.push(charge);
    }
    parts.sort_unstable_by_key(|part| part.slot);
    parts
}

fn fill(verdicts: &mut [Option<Verdict>], part: &Part<'_, '_>, answer: Option<Vec<Verdict>>) {
    for (place, verdict) in part.places.iter().zip(answer.into_iter().flatten()) {
        verdicts[*place] = Some(verdict);
    }
}

fn is_denied(batch: &Batch<'_>, verdicts: &[Option<Verdict>], force: Force) -> bool {
    let mut asked = batch.charges.iter().zip(verdicts).filter(|(charge, _)| charge.force == force);
    asked.any(|(_, verdict)| verdict.as_ref().is_some_and(|verdict| !verdict.passes()))
}

/// Which places were charged for nothing: something they pass together with denies.
pub(super) fn to_return(batch: &Batch<'_>, verdicts: &[Option<Verdict>]) -> Vec<usize> {
    let is_refused = |place: &usize| verdicts[*place].as_ref().is_some_and(|verdict| !verdict.passes());
    let refused: SmallVec<[usize; 4]> = (0..verdicts.len()).filter(is_refused).collect();
    let is_for_nothing = |place: &usize| {
        let charge = &batch.charges[*place];
        !charge.is_attempt() && refused.iter().any(|other| charge.passes_with(&batch.charges[*other]))
    };
    (0..verdicts.len()).filter(|place| is_charged(verdicts, *place)).filter(is_for_nothing).collect()
}

/// Makes the verdicts at these places what they are without the charge.
pub(super) fn take_out(batch: &Batch<'_>, verdicts: &mut [Option<Verdict>], places: &[usize]) {
    for place in places {
        if let Some(verdict) = &mut verdicts[*place] {
            verdict.charged = None;
            give_units_back(batch.charges[*place].rule, &mut verdict.standings);
        }
    }
}

/// Where a key stands when the last request is not counted after all.
fn give_units_back(rule: &Rule, standings: &mut Standings) {
    let Rule::Rates { algorithm, rates, cost } = rule else { return };
    for (standing, rate) in standings.iter_mut().zip(rates) {
        let capacity = match algorithm {
            Algorithm::TokenBucket { burst: Some(burst) } => burst.get(),
            _ => rate.count.get(),
        };
        standing.remaining = (standing.remaining + u64::from(cost.get())).min(u64::from(capacity));
        if standing.remaining == u64::from(capacity) {
            standing.reset = Duration::ZERO;
        }
    }
}

/// Whether the next request would be denied.
fn is_spent(rule: &Rule, standings: &Standings) -> bool {
    let Rule::Rates { cost, .. } = rule else { return false };
    standings.iter().any(|standing| standing.remaining < u64::from(cost.get()))
}

#[cfg(test)]
mod tests;
