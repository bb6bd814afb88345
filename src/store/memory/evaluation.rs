//! Evaluates one charge of a batch.

use super::shard::Shard;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::decision::batch::Charged;
use crate::decision::batch::Ledger;
use crate::limit::Standing;
use crate::limit::State;
use crate::store::unsettled::Unsettled;

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
        Verdict { retry_after, standings, charged, is_exempt: false }
    }
}
