//! One charge of a batch on its way to a verdict.

use super::shard::Shard;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::decision::batch::Charged;
use crate::decision::batch::Items;
use crate::decision::batch::Ledger;
use crate::limit::Count;
use crate::limit::Rule;
use crate::limit::Standing;
use crate::limit::State;

/// A charge, and what its shard says to it.
pub(super) struct Case<'b, 'p> {
    pub(super) charge: &'b Charge<'p>,
    /// Where in the shard; `None` while the key is unknown.
    pub(super) place: Option<usize>,
    /// When there is room; `None` when that is now.
    opens: Option<Timestamp>,
    /// There is no room to remember this key.
    pub(super) turned_away: bool,
}

impl<'b, 'p> Case<'b, 'p> {
    pub(super) fn look_up(charge: &'b Charge<'p>, shard: &Shard, now: Timestamp) -> Self {
        let place = shard.find(charge.key);
        let opens = match place {
            Some(place) => shard.state(place).opens_at(charge.rule, now),
            None => State::fresh(charge.rule).opens_at(charge.rule, now),
        };
        Self { charge, place, opens, turned_away: false }
    }

    pub(super) fn has_room(&self) -> bool {
        self.opens.is_none()
    }

    /// Whether it is counted when it passes, or does not. A request that is denied is an attempt, but never in flight.
    pub(super) fn is_charged(&self, passes: bool) -> bool {
        passes || (self.charge.count == Count::Attempts && matches!(self.charge.rule, Rule::Rates { .. }))
    }

    /// Begins to remember the key; where there is no room for it, it is refused.
    pub(super) fn admit(&mut self, shard: &mut Shard, batch: &Batch<'_>, now: Timestamp) {
        match shard.admit(self.charge.key, self.charge.rule, batch, now) {
            Ok(place) => self.place = Some(place),
            Err(full) => {
                self.turned_away = true;
                self.opens = self.opens.max(Some(now + full.retry_after));
            }
        }
    }

    /// Counts it or not, and says where the key stands then.
    pub(super) fn conclude(&self, charged: bool, shard: &mut Shard, now: Timestamp) -> Verdict {
        let rule = self.charge.rule;
        let retry_after = self.opens.map(|opens| opens.since(now));
        let is_charged = charged && self.place.is_some();
        let standings = match (self.place, self.opens) {
            (Some(place), _) if charged => shard.charge(place, rule, now),
            (Some(place), Some(opens)) => shard.refuse(place, rule, opens, now),
            (Some(place), None) => shard.state(place).standings(rule, now),
            (None, None) => State::fresh(rule).standings(rule, now),
            (None, Some(opens)) => {
                let mut standings = State::fresh(rule).standings(rule, now);
                standings.fill(Standing { remaining: 0, reset: opens.since(now) });
                standings
            }
        };
        let charged = Charged { moment: now, ledger: Ledger::Local, fresh: Items::new() };
        Verdict { retry_after, standings, charged: is_charged.then_some(charged), is_exempt: false }
    }
}
