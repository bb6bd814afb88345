//! Decides batches under the locks of their shards.

use smallvec::SmallVec;

use super::store::{CountsMoved, LockedShards, MemoryStore};
use crate::rules::decision::batch::{Charged, Force, Items, Ledger};
use crate::rules::decision::{Batch, Charge, Grounds, Settlement, Verdict, Verdicts};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Rule, Standing, State};
use crate::store::memory::shard::Shard;
use crate::store::unsettled::{Unsettled, was_reset};
use crate::words::clock::Timestamp;

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

    pub(in crate::store) fn collect_decided(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, CountsMoved> {
        let mut verdicts = Verdicts::new();
        self.try_decide(batch, &mut verdicts)?;
        Ok(verdicts.into_vec())
    }

    pub(in crate::store) fn try_look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, CountsMoved> {
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
        let _here = self.here()?;
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

impl MemoryStore {
    /// Settles in this order, and returns how many were settled. The counts of the others have moved to another
    /// process.
    pub(in crate::store) fn settle_here(&self, settlements: &[Settlement<'_>]) -> usize {
        let moved = settlements.iter().position(|settlement| self.try_settle(settlement).is_err());
        moved.unwrap_or(settlements.len())
    }

    pub(super) fn try_settle(&self, settlement: &Settlement<'_>) -> Result<(), CountsMoved> {
        match *settlement {
            Settlement::Release(key) => self.try_release(key),
            Settlement::TakeBack { key, rule, charged } => self.try_take_back(key, rule, charged),
            Settlement::Charge { key, rule, items } => self.try_charge(key, rule, items),
            Settlement::Keep { key, rule, items, charged } => {
                let shard = self.shard(key)?;
                let was_reset = was_reset(charged);
                drop(shard);
                if was_reset { self.try_charge(key, rule, items) } else { Ok(()) }
            }
            Settlement::Reset(key) => self.try_reset(key, None),
            Settlement::Remember { of, most, keep, ref was_known } => {
                let _here = self.here()?;
                let now = self.clock.now();
                was_known.tell(self.known_clients.remember(of, most, now + keep, now));
                Ok(())
            }
        }
    }

    pub(super) fn try_release(&self, key: KeyHash) -> Result<(), CountsMoved> {
        self.shard(key)?.release(key);
        Ok(())
    }

    /// Takes back a charge. A charge that was reset since is gone already, and later charges belong to other requests.
    pub(super) fn try_take_back(&self, key: KeyHash, rule: &Rule, charged: &Charged) -> Result<(), CountsMoved> {
        let mut shard = self.shard(key)?;
        if !was_reset(charged) {
            shard.take_back(key, rule, charged, self.clock.now());
        }
        Ok(())
    }

    /// Counts a request, whether or not the limit has room. It is not counted if the shard has no room for its key.
    pub(super) fn try_charge(&self, key: KeyHash, rule: &Rule, items: &Items) -> Result<(), CountsMoved> {
        let mut shard = self.shard(key)?;
        let now = self.clock.now();
        let known = shard.find(key);
        if let Some(place) = known.or_else(|| shard.admit(key, rule, &Batch::default(), now).ok()) {
            shard.charge(place, rule, items, now);
        }
        if known.is_none() {
            shard.remove_expired(now, 1);
        }
        Ok(())
    }

    /// Resets a key. `until`: when a shared store reset it, by its clock, if that is known; later charges still count
    /// there.
    pub(super) fn try_reset(&self, key: KeyHash, until: Option<Timestamp>) -> Result<(), CountsMoved> {
        let mut shard = self.shard(key)?;
        shard.reset(key);
        // While the lock is held, so that this does not void the reservation of a later charge.
        self.unsettled.reset(key, until);
        Ok(())
    }
}

// Evaluates one charge of a batch.

/// A charge and what its shard knows about its key.
pub(super) struct ChargeEvaluation<'b, 'p> {
    pub(super) charge: &'b Charge<'p>,
    /// The place of the key in the shard; `None`: the shard does not remember it.
    pub(super) place: Option<usize>,
    /// When there is room; `None`: now.
    opens: Option<Timestamp>,
    /// The shard has no room to remember the key.
    pub(super) turned_away: bool,
}

impl<'b, 'p> ChargeEvaluation<'b, 'p> {
    pub(super) fn look_up(charge: &'b Charge<'p>, shard: &Shard, now: Timestamp) -> Self {
        let place = shard.find(charge.key);
        let opens = match place {
            Some(place) => shard.state(place).opens_at(charge.rule, &charge.items, now),
            None => State::fresh(charge.rule).opens_at(charge.rule, &charge.items, now),
        };
        Self { charge, place, opens, turned_away: false }
    }

    pub(super) fn has_room(&self) -> bool {
        self.opens.is_none()
    }

    /// Whether it is charged, given whether the request passes. A denied request counts as an attempt, but never takes
    /// a slot.
    pub(super) fn is_charged(&self, passes: bool) -> bool {
        (passes && self.charge.is_charged_with(self.has_room())) || self.charge.is_attempt()
    }

    /// Begins to remember the key. If there is no room for the key, the charge is refused.
    pub(super) fn admit(&mut self, shard: &mut Shard, batch: &Batch<'_>, now: Timestamp) {
        match shard.admit(self.charge.key, self.charge.rule, batch, now) {
            Ok(place) => self.place = Some(place),
            Err(full) => {
                self.turned_away = true;
                shard.turned_away += 1;
                self.opens = self.opens.max(Some(now + full.retry_after));
            }
        }
    }

    /// Charges it if it `is_charged`, and returns the verdict with where the key stands then.
    pub(super) fn conclude(
        &self,
        is_charged: bool,
        shard: &mut Shard,
        unsettled: &Unsettled,
        now: Timestamp,
    ) -> Verdict {
        let Charge { rule, items, .. } = self.charge;
        let retry_after = self.opens.map(|opens| unsettled.shortened(self.charge, opens.since(now)));
        let mut charged = None;
        let standings = match (self.place, self.opens) {
            (Some(place), _) if is_charged => {
                let fresh = shard.state(place).unseen(rule, items, now);
                let (moment, standings) = shard.charge(place, rule, items, now);
                // Made under the lock of the shard, so that a reset comes before all of this or after it.
                let reservation = self.charge.waits_for_outcome().then(|| unsettled.watch(self.charge.key).reserve());
                charged = Some(Charged { moment, ledger: Ledger::Local, fresh, reservation });
                standings
            }
            (Some(place), Some(opens)) => shard.refuse(place, rule, opens, now),
            (Some(place), None) => shard.state(place).standings(rule, now),
            (None, Some(opens)) if self.turned_away => {
                let mut standings = State::fresh(rule).standings(rule, now);
                standings.fill(Standing { remaining: 0, reset: opens.since(now) });
                standings
            }
            (None, _) => State::fresh(rule).standings(rule, now),
        };
        let grounds = if self.turned_away { Grounds::StoreFull } else { Grounds::Count };
        Verdict { retry_after, standings, charged, is_exempt: false, grounds }
    }
}
