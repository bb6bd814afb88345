//! Decides batches under the locks of their shards.

use smallvec::SmallVec;

use super::evaluation::ChargeEvaluation;
use super::store::LockedShards;
use super::store::MemoryStore;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::decision::Verdicts;
use crate::decision::batch::Force;
use crate::store::handover::CountsMoved;

/// The charges of one batch, each with the position of its shard among those locked.
type Evaluations<'b, 'p> = SmallVec<[(ChargeEvaluation<'b, 'p>, usize); 4]>;

impl MemoryStore {
    /// Decides a batch, and adds the verdicts in its order. `false`: the counts have moved to another process.
    pub(in crate::store) fn decide_here(&self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> bool {
        self.try_decide(batch, verdicts).is_ok()
    }

    pub(super) fn try_decide(&self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), CountsMoved> {
        match batch.charges.as_slice() {
            [] => Ok(()),
            _ if self.try_is_known(batch)? => {
                verdicts.extend(without_exempt(batch, |batch| self.collect_decided(batch))?);
                Ok(())
            }
            [charge] => self.decide_one(charge, batch, verdicts),
            _ => self.decide_all(batch, true, verdicts),
        }
    }

    pub(super) fn collect_decided(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, CountsMoved> {
        let mut verdicts = Verdicts::new();
        self.try_decide(batch, &mut verdicts)?;
        Ok(verdicts.into_vec())
    }

    pub(super) fn try_look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, CountsMoved> {
        if self.try_is_known(batch)? {
            return without_exempt(batch, |batch| self.try_look(batch));
        }
        batch.charges.iter().map(|charge| self.try_look_at(charge)).collect()
    }

    /// Whether the client is known; `false` where no charge depends on it.
    pub(super) fn try_is_known(&self, batch: &Batch<'_>) -> Result<bool, CountsMoved> {
        if batch.known.is_empty() || !batch.charges.iter().any(|charge| charge.unless_known) {
            return Ok(false);
        }
        let _here = self.handover.here()?;
        let now = self.clock.now();
        Ok(batch.known.iter().all(|of| self.known_clients.is_known(*of, now)))
    }

    /// The short way for the common request that meets one limit: one lock, and no other charge to agree with.
    fn decide_one(&self, charge: &Charge<'_>, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), CountsMoved> {
        let mut shard = self.shard(charge.key)?;
        let now = self.clock.now();
        let mut evaluation = ChargeEvaluation::look_up(charge, &shard, now);
        let passes = |evaluation: &ChargeEvaluation<'_, '_>| evaluation.has_room() || charge.force == Force::Delay;
        let is_new = evaluation.place.is_none() && evaluation.is_charged(passes(&evaluation));
        if is_new {
            evaluation.admit(&mut shard, batch, now);
        }
        let is_charged = evaluation.is_charged(passes(&evaluation));
        verdicts.push(evaluation.conclude(is_charged, &mut shard, &self.unsettled, now));
        if is_new {
            shard.remove_expired(now, 1);
        }
        Ok(())
    }

    /// Where a key stands.
    pub(super) fn try_look_at(&self, charge: &Charge<'_>) -> Result<Verdict, CountsMoved> {
        let mut shard = self.shard(charge.key)?;
        let now = self.clock.now();
        Ok(ChargeEvaluation::look_up(charge, &shard, now).conclude(false, &mut shard, &self.unsettled, now))
    }

    /// `others_pass`: no other store has denied the request, so that only this batch can deny it.
    pub(super) fn decide_all(
        &self,
        batch: &Batch<'_>,
        others_pass: bool,
        verdicts: &mut Verdicts,
    ) -> Result<(), CountsMoved> {
        let mut locked = self.lock(batch)?;
        // Read under the locks, so that time never runs backwards for a key.
        let now = self.clock.now();
        let mut evaluations = Evaluations::new();
        for charge in &batch.charges {
            let number = self.shard_of(charge.key);
            let shard = locked.iter().position(|(locked, _)| *locked == number).expect("its shard was locked");
            evaluations.push((ChargeEvaluation::look_up(charge, &locked[shard].1, now), shard));
        }
        let admitted = admit(&mut evaluations, &mut locked, batch, now, others_pass);
        let binding_passes = others_pass && binding_passes(&evaluations);
        for (evaluation, shard) in &evaluations {
            let charged = evaluation.is_charged(passes(evaluation, &evaluations, binding_passes));
            verdicts.push(evaluation.conclude(charged, &mut locked[*shard].1, &self.unsettled, now));
        }
        if admitted > 0 {
            locked.iter_mut().for_each(|(_, shard)| shard.remove_expired(now, admitted));
        }
        Ok(())
    }
}

/// Makes room for every key that is to be charged and is not remembered yet. Returns how many were admitted.
///
/// A key for which there is no room is refused, and so is everything that passes only together with it. Keys that were
/// admitted before that stay: they have counted nothing, and are the first to be evicted.
fn admit(
    evaluations: &mut Evaluations<'_, '_>,
    locked: &mut LockedShards<'_>,
    batch: &Batch<'_>,
    now: Timestamp,
    others_pass: bool,
) -> usize {
    let mut admitted = 0;
    if evaluations.iter().all(|(evaluation, _)| evaluation.place.is_some()) {
        return admitted;
    }
    loop {
        let binding_passes = others_pass && binding_passes(evaluations);
        let is_new = |evaluation: &ChargeEvaluation<'_, '_>| {
            evaluation.place.is_none()
                && !evaluation.turned_away
                && evaluation.is_charged(passes(evaluation, evaluations, binding_passes))
        };
        let Some(next) = evaluations.iter().position(|(evaluation, _)| is_new(evaluation)) else { return admitted };
        let (evaluation, shard) = &mut evaluations[next];
        evaluation.admit(&mut locked[*shard].1, batch, now);
        admitted += usize::from(evaluation.place.is_some());
    }
}

/// Decides a batch of a known client: without the charges that do not hold for known clients.
fn without_exempt(
    batch: &Batch<'_>,
    decide: impl Fn(&Batch<'_>) -> Result<Vec<Verdict>, CountsMoved>,
) -> Result<Vec<Verdict>, CountsMoved> {
    let others = batch.charges.iter().filter(|charge| !charge.unless_known).cloned();
    let mut verdicts = decide(&Batch { charges: others.collect(), ..Batch::default() })?.into_iter();
    let all = batch.charges.iter().map(|charge| if charge.unless_known { None } else { verdicts.next() });
    Ok(all.map(|verdict| verdict.unwrap_or_else(Verdict::exempt)).collect())
}

fn binding_passes(evaluations: &Evaluations<'_, '_>) -> bool {
    evaluations.iter().all(|(evaluation, _)| evaluation.charge.force != Force::Binding || evaluation.has_room())
}

/// Whether every charge that passes only together with this one has room.
fn passes(evaluation: &ChargeEvaluation<'_, '_>, evaluations: &Evaluations<'_, '_>, binding_passes: bool) -> bool {
    match evaluation.charge.force {
        Force::Binding | Force::Delay => binding_passes,
        Force::Shadow => {
            let mut same_limit = evaluations.iter().filter(|(other, _)| other.charge.limit == evaluation.charge.limit);
            same_limit.all(|(other, _)| other.has_room())
        }
    }
}
