//! The third step: turns verdicts into one decision, the severest first.

use std::time::Duration;

use smallvec::SmallVec;

use super::batch::Force;
use super::{Denial, DenialCause, LimitReports, MetLimit, NewBan, PendingOutcome, Plan, Policy, Verdict};
use crate::rules::decision::denial::{LimitRuling, RetryWait};
use crate::rules::decision::known_client::PendingCharge;
use crate::rules::decision::plan::{PlannedCharges, PlannedLimit};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Action, Detail, LimitId};
use crate::rules::route::{RouteId, UpstreamId};
use crate::words::pending_reservations::ToldLater;
use crate::words::pool::{Pooled, pool_of};

/// The combined result of the rulings of all limits.
#[derive(Default)]
struct Rulings<'p, 'v> {
    /// The limits that deny the request.
    denying: SmallVec<[LimitId; 2]>,
    /// The ruling that decides.
    decisive: Option<LimitRuling<'p, 'v>>,
    /// The longest of their waits that is shown.
    retry_after: Option<Duration>,
    /// The longest delay.
    delay: Option<(LimitRuling<'p, 'v>, Duration)>,
    report: LimitReports,
}

impl Plan<'_, '_> {
    /// `verdicts` answer the batch of the plan, in its order.
    pub fn conclude(&self, verdicts: &[Verdict]) -> Decision {
        if let Some(cause) = &self.denied_for {
            return Decision::Deny(Pooled::new(Denial::bare(self.route(), cause.clone())));
        }
        self.charges.conclude(self.entry.policy, self.route(), verdicts, |passes| self.pending(verdicts, passes))
    }

    /// The charges that the outcome will settle. A denied request has only charges of shadow limits.
    fn pending(&self, verdicts: &[Verdict], passes: bool) -> Option<Box<PendingOutcome>> {
        let route = self.outcome?;
        let charges = &self.batch().charges;
        let mut pending = SmallVec::new();
        for (charge, verdict) in charges.iter().zip(verdicts).filter(|(_, verdict)| !verdict.is_exempt) {
            let PlannedLimit { limit: id, is_undisputed, .. } = self.charges.limits[usize::from(charge.limit)];
            let limit = self.entry.policy.limit(id);
            let waits = limit.count.outcome().is_some() || limit.reset_on.is_some();
            if !waits || !(passes || verdict.charged.is_some()) {
                continue;
            }
            pending.push(PendingCharge {
                limit: id,
                key: charge.key,
                items: charge.items.clone(),
                charged: verdict.charged.clone(),
                may_reset: is_undisputed && charges.iter().filter(|other| other.limit == charge.limit).count() == 1,
            });
        }
        let client = self.client.as_ref().filter(|_| passes);
        let known_client = client.and_then(|client| client.remember);
        let enrollment = client.and_then(|client| client.device.enrollment.clone());
        let sign_in = self.sign_in.clone().filter(|_| passes);
        let is_known_client =
            client.is_some_and(|client| client.device.is_known) || verdicts.iter().any(|verdict| verdict.is_exempt);
        // The limits ask the store only where one of them spares known clients.
        let is_asked = known_client.is_some() && !is_known_client;
        let was_known = if is_asked { ToldLater::asked() } else { ToldLater::default() };
        let charges = pending;
        Some(Box::new(PendingOutcome { route, charges, known_client, enrollment, sign_in, is_known_client, was_known }))
    }
}

impl PlannedCharges<'_> {
    /// `verdicts` answer the batch, in its order. `pending` is what the outcome will settle where the request passes, or
    /// does not.
    pub(super) fn conclude(
        &self,
        policy: &Policy,
        route: Option<RouteId>,
        verdicts: &[Verdict],
        pending: impl FnOnce(bool) -> Option<Box<PendingOutcome>>,
    ) -> Decision {
        let rulings = self.rulings(policy, verdicts);
        let slots = self.slots(verdicts, &rulings);
        let Some(decisive) = rulings.decisive else {
            return Decision::Pass(Pooled::made_by(|| Pass {
                route,
                upstream: route.map_or(policy.upstream, |route| policy.routes.get(route).upstream),
                delay: rulings.delay.map(|(ruling, span)| (ruling.id, span)),
                delayed_key: rulings.delay.and_then(|(ruling, _)| ruling.key),
                slots,
                pending: pending(true),
                met: if rulings.delay.is_some() { self.met(policy, verdicts).collect() } else { Vec::new() },
                report: rulings.report,
            }));
        };
        let mut denial = Pooled::made_by(|| Denial {
            route,
            cause: DenialCause::Limited { limits: rulings.denying, retry_after: rulings.retry_after },
            limit: Some(decisive.id),
            key: decisive.key,
            wait: decisive.wait().and_then(RetryWait::span),
            penalty: decisive.penalty(),
            new_bans: self.new_bans(policy, verdicts),
            is_suspect: false,
            slots,
            pending: pending(false),
            met: SmallVec::new(),
            report: rulings.report,
        });
        denial.met.extend(self.met(policy, verdicts));
        Decision::Deny(denial)
    }

    /// How all limits of the plan decided.
    fn rulings<'p, 'v>(&self, policy: &'p Policy, verdicts: &'v [Verdict]) -> Rulings<'p, 'v> {
        let report = LimitReports { unread: self.unread, ..LimitReports::default() };
        let mut rulings = Rulings { report, ..Rulings::default() };
        let mut next = 0;
        for number in 0..self.limits.len() {
            if let Some(ruling) = LimitRuling::of(policy, self, number, verdicts, &mut next) {
                rulings.add(&ruling);
            }
        }
        rulings
    }

    /// How each limit decided. Not needed for requests that pass at once.
    fn met(&self, policy: &Policy, verdicts: &[Verdict]) -> impl Iterator<Item = MetLimit> {
        let mut next = 0;
        let rulings =
            (0..self.limits.len()).filter_map(move |number| LimitRuling::of(policy, self, number, verdicts, &mut next));
        rulings.map(|ruling| ruling.met())
    }

    /// Every key that a limit with `ban` denies and that was not banned before.
    fn new_bans(&self, policy: &Policy, verdicts: &[Verdict]) -> SmallVec<[NewBan; 1]> {
        let denied = self.batch.charges.iter().zip(verdicts).filter(|(_, verdict)| !verdict.passes());
        let new_bans = denied.filter_map(|(charge, _)| {
            let number = usize::from(charge.limit);
            let limit = self.limits[number].limit;
            let bans = matches!(policy.limit(limit).then.action, Action::Ban(_));
            let begins = bans && charge.force == Force::Binding && self.ban_of(number).is_none();
            begins.then_some(NewBan { limit, key: charge.key })
        });
        new_bans.collect()
    }

    /// The concurrency slots that the store has taken for this request.
    fn slots(&self, verdicts: &[Verdict], rulings: &Rulings<'_, '_>) -> SmallVec<[KeyHash; 2]> {
        let passes = rulings.decisive.is_none();
        let mut slots = SmallVec::new();
        for (charge, verdict) in self.batch.charges.iter().zip(verdicts) {
            if !charge.is_slot() || verdict.is_exempt {
                continue;
            }
            let is_taken = match charge.force {
                Force::Binding => passes,
                Force::Delay => passes && verdict.passes(),
                Force::Shadow => {
                    let limit = self.limits[usize::from(charge.limit)].limit;
                    rulings.report.limits.iter().any(|report| report.limit == limit && report.applied.is_none())
                }
            };
            if is_taken {
                slots.push(charge.key);
            }
        }
        slots
    }
}

impl<'p, 'v> Rulings<'p, 'v> {
    fn add(&mut self, ruling: &LimitRuling<'p, 'v>) {
        let LimitRuling { id, limit, denies, standings, found, .. } = *ruling;
        self.report.add(id, limit, ruling.applied(), found, standings);
        if denies.is_none() {
            return;
        }
        if let Some(span) = ruling.delay()
            && self.delay.is_none_or(|(_, longest)| span > longest)
        {
            self.delay = Some((*ruling, span));
        }
        if !ruling.denies_request() {
            return;
        }
        self.denying.push(id);
        if self.decisive.is_none_or(|severest| ruling.rank() > severest.rank()) {
            self.decisive = Some(*ruling);
        }
        if limit.headers != Detail::None {
            // A limit that denies for a missing part has no wait: a request with that part may come at once.
            let wait = ruling.wait().map(|wait| wait.span().unwrap_or_default());
            self.retry_after = self.retry_after.max(wait);
        }
    }
}

// The decision on a request.

/// The decision on a request. It stays where it is made.
#[derive(Debug)]
pub enum Decision {
    Pass(Pooled<Pass>),
    Deny(Pooled<Denial>),
}

/// A request that is forwarded.
#[derive(Clone, Debug)]
pub struct Pass {
    pub route: Option<RouteId>,
    pub upstream: UpstreamId,
    /// The limit that delays it, and how long it is held before it is forwarded.
    pub delay: Option<(LimitId, Duration)>,
    /// The key that this limit counts it under.
    pub delayed_key: Option<KeyHash>,
    /// Concurrency slots to give back when the answer ends.
    pub slots: SmallVec<[KeyHash; 2]>,
    /// The charges that wait for the outcome; `None`: no limit counts by outcome.
    pub pending: Option<Box<PendingOutcome>>,
    pub report: LimitReports,
    /// Every limit that the request met, if one delays it.
    pub met: Vec<MetLimit>,
}

pool_of!(Pass);
