//! Decides a batch across hash slots, all or none: reserves in every slot, and gives back when one denies.
//!
//! Keys that surely have room are asked in all slots at once, in one round trip. What is given back a moment later has
//! counted for that moment, and may have denied a request that would else have passed: so keys near their limit are asked one
//! after the other, behind those, each only if no key before has denied.

use std::pin::pin;
use std::sync::Arc;

use redis::Value;
use smallvec::SmallVec;

use super::decided::{PartialVerdicts, RedisDecision};
use super::settle::add;
use crate::rules::decision::batch::{Force, KnownClientKey};
use crate::rules::decision::{Batch, Charge, Verdict};
use crate::rules::key::KeyHash;
use crate::store::leases::AskedLeases;
use crate::store::redis::scripts;
use crate::store::redis::scripts::invocation::Answer;
use crate::store::redis::scripts::{
    DecisionCall, KeySettlement, LeaseQuestions, Purpose, SettlementAction, invocation,
};
use crate::store::redis::settings::Mode;
use crate::store::redis::state::decided::{ChargesBySlot, SlotCharges, split, take_out, to_return};
use crate::store::redis::state::settle::join_all;
use crate::store::redis::state::store::RedisCore;
use crate::words::timer::{PeerTimedOut, peer_timeout};

/// Whether each charge of a batch surely has room, in its order. It is unknown of the charges behind the last one.
pub(super) type RoomyPlaces = SmallVec<[bool; 8]>;

/// How much longer than the timeout of a silent server a decision waits for its answer, while the server answers others.
const PATIENCE: u32 = 10;

/// The server answers others, but this question or its answer waits for its turn for too long.
struct Overload;

impl RedisCore {
    pub(in crate::store::redis) fn is_one_slot(&self, batch: &Batch<'_>) -> bool {
        self.shared.settings.mode != Mode::Cluster || batch.charges.len() <= 1 || self.parts(batch).len() <= 1
    }

    pub(super) fn parts<'b, 'p>(&self, batch: &'b Batch<'p>) -> ChargesBySlot<'b, 'p> {
        split(batch, |key| self.slot(key))
    }

    pub(in crate::store::redis) fn slot(&self, key: KeyHash) -> u16 {
        match self.shared.settings.mode {
            Mode::Cluster => self.links.slot(self.shared.settings.key_names().name(key).as_bytes()),
            Mode::Single | Mode::Sentinel => 0,
        }
    }

    /// `remembered`: whether the client is known, if no server answers that.
    pub(in crate::store::redis) async fn decide(
        self: &Arc<Self>,
        batch: &Batch<'_>,
        remembered: bool,
        roomy: &RoomyPlaces,
    ) -> RedisDecision {
        let holder = self.shared.holder();
        if batch.known.is_empty() || self.is_together(batch) {
            self.decide_parts(batch, &self.parts(batch), roomy, holder).await
        } else if self.is_known(&batch.known).await.unwrap_or(remembered) {
            let others = without_exempt(batch);
            let binds = |(charge, _): &(&Charge<'_>, &bool)| !charge.unless_known;
            let roomy = batch.charges.iter().zip(roomy).filter(binds).map(|(_, has_room)| *has_room).collect();
            let decided = self.decide_parts(&others, &self.parts(&others), &roomy, holder).await;
            RedisDecision { verdicts: with_exempt(batch, decided.verdicts), ..decided }
        } else {
            let unknown = Batch { charges: batch.charges.clone(), ..Batch::default() };
            self.decide_parts(&unknown, &self.parts(&unknown), roomy, holder).await
        }
    }

    /// Decides these parts together.
    async fn decide_parts(
        self: &Arc<Self>,
        batch: &Batch<'_>,
        parts: &[SlotCharges<'_, '_>],
        roomy: &RoomyPlaces,
        holder: u32,
    ) -> RedisDecision {
        let (verdicts, is_overload) = match parts {
            [] => (Vec::new(), false),
            [only] => match self.ask(only, &batch.known, Purpose::Decide, holder).await {
                Ok(Some(verdicts)) => (verdicts.into_iter().map(Some).collect(), false),
                Ok(None) => (vec![None; batch.charges.len()], false),
                Err(Overload) => (vec![None; batch.charges.len()], only.binds()),
            },
            _ => Box::pin(self.reserve(batch, parts, roomy, holder)).await,
        };
        RedisDecision { verdicts, holder, is_overload }
    }

    pub(in crate::store::redis) async fn look(&self, batch: &Batch<'_>, remembered: bool) -> Vec<Option<Verdict>> {
        if batch.known.is_empty() || self.is_together(batch) {
            self.look_at(batch, &batch.known).await
        } else if self.is_known(&batch.known).await.unwrap_or(remembered) {
            with_exempt(batch, self.look_at(&without_exempt(batch), &[]).await)
        } else {
            self.look_at(batch, &[]).await
        }
    }

    async fn look_at(&self, batch: &Batch<'_>, known: &[KnownClientKey]) -> PartialVerdicts {
        let parts = self.parts(batch);
        let answers = join_all(parts.iter().map(|part| self.ask(part, known, Purpose::Look, 0))).await;
        let mut verdicts: PartialVerdicts = vec![None; batch.charges.len()];
        parts.iter().zip(answers).for_each(|(part, answer)| fill(&mut verdicts, part, answer.unwrap_or_default()));
        verdicts
    }

    /// Whether one script can see all keys of a batch, including those of known clients.
    fn is_together(&self, batch: &Batch<'_>) -> bool {
        self.shared.settings.mode != Mode::Cluster || {
            let subjects = batch.known.iter().map(|known| known.subject);
            let mut slots = batch.charges.iter().map(|charge| charge.key).chain(subjects).map(|key| self.slot(key));
            let first = slots.next();
            slots.all(|slot| Some(slot) == first)
        }
    }

    /// Whether all of these are known; `None` if not all servers answer.
    async fn is_known(&self, known: &[KnownClientKey]) -> Option<bool> {
        let mut slots: Vec<(u16, Vec<KnownClientKey>)> = Vec::new();
        for known_client in known {
            add(&mut slots, self.slot(known_client.subject), *known_client);
        }
        let answers = join_all(slots.iter().map(|(slot, known)| async move {
            let invocation = scripts::is_known(self.shared.settings.key_names(), &self.shared.time, known);
            self.links.call(*slot, &invocation).await.ok().map(|answer| answer == Value::Int(1))
        }));
        let answers = answers.await;
        if answers.contains(&Some(false)) {
            Some(false)
        } else {
            answers.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
        }
    }

    /// Decides binding parts in [rounds] until one denies, and parts with only shadow limits at the same time.
    ///
    /// A part whose server does not answer is left out: if the server has charged it, the charge stays. Also returns whether
    /// this gateway was too busy to ask for a binding part; the rest was not asked for then.
    async fn reserve(
        self: &Arc<Self>,
        batch: &Batch<'_>,
        parts: &[SlotCharges<'_, '_>],
        roomy: &RoomyPlaces,
        holder: u32,
    ) -> (PartialVerdicts, bool) {
        let (binding, shadows): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.binds());
        let decide_shadows = join_all(shadows.iter().map(|part| self.ask(part, &[], Purpose::Decide, holder)));
        let rounds = rounds(&binding, roomy);
        let decide_binding = self.decide_binding(batch, parts, &rounds, holder);
        let ((mut verdicts, is_overload), answers) = tokio::join!(decide_binding, decide_shadows);
        shadows.iter().zip(answers).for_each(|(part, answer)| fill(&mut verdicts, part, answer.unwrap_or_default()));
        // Several keys of one shadow limit also pass only together.
        let returned = to_return(batch, &verdicts);
        if !returned.is_empty() {
            self.give_back(parts, &verdicts, &returned, holder).await;
            take_out(batch, &mut verdicts, &returned);
        }
        (verdicts, is_overload)
    }

    async fn decide_binding(
        self: &Arc<Self>,
        batch: &Batch<'_>,
        parts: &[SlotCharges<'_, '_>],
        rounds: &[Vec<&SlotCharges<'_, '_>>],
        holder: u32,
    ) -> (PartialVerdicts, bool) {
        let mut verdicts: PartialVerdicts = vec![None; batch.charges.len()];
        for (number, round) in rounds.iter().enumerate() {
            let answers = join_all(round.iter().map(|part| self.ask(part, &[], Purpose::Decide, holder))).await;
            let mut is_overload = false;
            for (part, answer) in round.iter().zip(answers) {
                is_overload |= answer.is_err();
                fill(&mut verdicts, part, answer.unwrap_or_default());
            }
            if is_overload {
                return (verdicts, true);
            }
            if !is_denied(batch, &verdicts, Force::Binding) {
                continue;
            }
            // Gives back what the other parts reserved, and asks the remaining ones whether they deny too, all at once.
            let later: Vec<_> = rounds[number + 1..].iter().flatten().collect();
            let returned = to_return(batch, &verdicts);
            let give_back = self.give_back(parts, &verdicts, &returned, holder);
            let asking = join_all(later.iter().map(|part| self.ask(part, &[], Purpose::Deny, holder)));
            let ((), answers) = tokio::join!(give_back, asking);
            later.iter().zip(answers).for_each(|(part, answer)| fill(&mut verdicts, part, answer.unwrap_or_default()));
            take_out(batch, &mut verdicts, &returned);
            break;
        }
        (verdicts, false)
    }

    /// `None`: the server does not answer.
    async fn ask(
        &self,
        part: &SlotCharges<'_, '_>,
        known: &[KnownClientKey],
        purpose: Purpose,
        holder: u32,
    ) -> Result<Option<Vec<Verdict>>, Overload> {
        let leases = &self.shared.leases;
        let asked = (purpose == Purpose::Decide).then(|| AskedLeases::ask(leases, &part.charges, holder));
        let group = DecisionCall {
            names: self.shared.settings.key_names(),
            time: &self.shared.time,
            holder,
            charges: &part.charges,
            known,
            leases: leases.is_on().then(|| LeaseQuestions {
                nodes: leases.nodes(),
                requests: asked.as_ref().map_or(&[], AskedLeases::requests),
            }),
        };
        let invocation = group.invocation(purpose);
        let patience = self.shared.settings.timeout * PATIENCE;
        let has_charged = |answer: &Value| {
            let is_charged = |verdict: &Verdict| verdict.charged.is_some();
            invocation::read(answer, &part.charges).is_some_and(|answer| answer.verdicts.iter().any(is_charged))
        };
        let answer = peer_timeout(patience, pin!(self.links.charge(part.slot, &invocation, has_charged))).await;
        let answer = answer.map_err(|PeerTimedOut| Overload)?;
        let Some(Answer { mut verdicts, leased }) =
            answer.ok().and_then(|answer| invocation::read(&answer, &part.charges))
        else {
            return Ok(None);
        };
        if let Some(asked) = asked {
            asked.answered(&part.charges, &mut verdicts, &leased);
        }
        Ok(Some(verdicts))
    }

    /// Gives back what was charged at these places, with one call for each part. A call that may have been run is not
    /// repeated.
    pub(super) async fn give_back(
        self: &Arc<Self>,
        parts: &[SlotCharges<'_, '_>],
        verdicts: &[Option<Verdict>],
        places: &[usize],
        holder: u32,
    ) {
        join_all(parts.iter().map(|part| async move {
            let mut entries: SmallVec<[KeySettlement<'_>; 4]> = SmallVec::new();
            for (place, charge) in part.places.iter().zip(&part.charges).filter(|(place, _)| places.contains(place)) {
                let Some(Verdict { charged: Some(charged), .. }) = &verdicts[*place] else { continue };
                let rule = charge.rule;
                let action = if charge.is_slot() {
                    SettlementAction::Release { holder, slots: 1 }
                } else {
                    SettlementAction::TakeBack { rule, charged }
                };
                entries.push(KeySettlement { key: charge.key, action });
            }
            self.settle_slot(part.slot, &entries).await;
        }))
        .await;
    }
}

/// In which order parts are asked: those that surely have room together, then each of the others by itself.
fn rounds<'r, 'b, 'p>(
    binding: &[&'r SlotCharges<'b, 'p>],
    roomy: &RoomyPlaces,
) -> SmallVec<[Vec<&'r SlotCharges<'b, 'p>>; 4]> {
    let has_room = |part: &&&SlotCharges<'_, '_>| part.places.iter().all(|place| roomy.get(*place) == Some(&true));
    let together: Vec<_> = binding.iter().filter(has_room).copied().collect();
    let others = binding.iter().filter(|part| !has_room(part)).map(|part| vec![*part]);
    (!together.is_empty()).then_some(together).into_iter().chain(others).collect()
}

/// The batch without the charges that do not hold for known clients.
fn without_exempt<'p>(batch: &Batch<'p>) -> Batch<'p> {
    let charges = batch.charges.iter().filter(|charge| !charge.unless_known).cloned();
    Batch { charges: charges.collect(), ..Batch::default() }
}

/// The verdicts of a whole batch, given those of [`without_exempt`].
fn with_exempt(batch: &Batch<'_>, answers: PartialVerdicts) -> PartialVerdicts {
    let mut answers = answers.into_iter();
    let all = batch.charges.iter();
    all.map(|charge| if charge.unless_known { Some(Verdict::exempt()) } else { answers.next().flatten() }).collect()
}

fn fill(verdicts: &mut [Option<Verdict>], part: &SlotCharges<'_, '_>, answer: Option<Vec<Verdict>>) {
    for (place, verdict) in part.places.iter().zip(answer.into_iter().flatten()) {
        verdicts[*place] = Some(verdict);
    }
}

fn is_denied(batch: &Batch<'_>, verdicts: &[Option<Verdict>], force: Force) -> bool {
    let mut asked = batch.charges.iter().zip(verdicts).filter(|(charge, _)| charge.force == force);
    asked.any(|(_, verdict)| verdict.as_ref().is_some_and(|verdict| !verdict.passes()))
}
