//! The third step: turns verdicts into one decision, the severest first.

use std::time::Duration;

use smallvec::SmallVec;

use super::Decision;
use super::Denial;
use super::DenialCause;
use super::LimitReport;
use super::LimitReports;
use super::NewBan;
use super::Pass;
use super::Penalty;
use super::PendingOutcome;
use super::Plan;
use super::Verdict;
use super::batch::Force;
use super::plan::PlannedLimit;
use crate::key::KeyHash;
use crate::limit::Action;
use crate::limit::ActionSeverity;
use crate::limit::Detail;
use crate::limit::LimitId;
use crate::limit::Rule;
use crate::limit::Standings;

/// How one limit decided, over all keys that it counts a request under.
struct LimitRuling<'v> {
    limit: LimitId,
    shadow: bool,
    /// `None`: it lets the request pass.
    denies: Option<RetryWait>,
    /// Denies without counting: a part of the key is missing.
    outright: bool,
    /// Denies without counting: the key was banned before this request.
    banned: bool,
    /// The key that denies it, for a ban or a challenge.
    key: Option<KeyHash>,
    standings: Option<&'v Standings>,
}

/// How long until a limit would let a request pass, shortest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum RetryWait {
    For(Duration),
    Forever,
}

impl RetryWait {
    fn span(self) -> Option<Duration> {
        match self {
            Self::For(span) => Some(span),
            Self::Forever => None,
        }
    }
}

impl<'p> Plan<'p, '_> {
    /// `verdicts` answer the batch of the plan, in its order.
    pub fn conclude(&self, verdicts: &[Verdict]) -> Decision<'p> {
        let policy = self.entry.policy;
        let route = self.route().map(|route| policy.routes.get(route));
        if let Some(cause) = &self.denied_for {
            return Decision::Deny(Box::new(Denial::bare(self.route(), cause.clone(), &policy.deny_response)));
        }
        let rulings = self.rulings(verdicts);
        let report = LimitReports { limits: rulings.iter().map(LimitReport::from).collect() };
        let denying = self.denying(&rulings);
        let decisive = denying.iter().copied().reduce(|severest, next| {
            let rank = |ruling: &LimitRuling<'_>| (self.severity(ruling), ruling.denies);
            if rank(next) > rank(severest) { next } else { severest }
        });
        let slots = self.slots(verdicts, &rulings, decisive.is_none());
        let Some(decisive) = decisive else {
            let delay = self.delay(&rulings);
            return Decision::Pass(Pass {
                route: self.route(),
                upstream: route.map_or(policy.upstream, |route| route.upstream),
                delay: delay.map(|(ruling, span)| (ruling.limit, span)),
                delayed_key: delay.and_then(|(ruling, _)| ruling.key),
                slots,
                pending: self.pending(verdicts, true),
                report,
            });
        };
        let limits = denying.iter().map(|ruling| ruling.limit).collect();
        let shown = denying.iter().filter(|ruling| policy.limit(ruling.limit).headers != Detail::None);
        // A limit that denies for a missing part has no wait: a request with that part may come at once.
        let retry_after =
            shown.filter_map(|ruling| self.wait(ruling)).map(|wait| wait.span().unwrap_or_default()).max();
        let own = match &policy.limit(decisive.limit).then.action {
            Action::Deny(own) => own.as_deref(),
            _ => None,
        };
        let of_route = || route.and_then(|route| route.deny_response.as_deref());
        Decision::Deny(Box::new(Denial {
            route: self.route(),
            cause: DenialCause::Limited { limits, retry_after },
            limit: Some(decisive.limit),
            key: decisive.key,
            wait: self.wait(decisive).and_then(RetryWait::span),
            response: own.or_else(of_route).unwrap_or(&policy.deny_response),
            penalty: self.penalty(decisive),
            new_bans: self.new_bans(verdicts),
            is_suspect: false,
            slots,
            pending: self.pending(verdicts, false),
            report,
        }))
    }

    /// The rulings that deny the request. Limits that delay and shadow limits deny nothing.
    fn denying<'r, 'v>(&self, rulings: &'r [LimitRuling<'v>]) -> SmallVec<[&'r LimitRuling<'v>; 4]> {
        let delays =
            |ruling: &LimitRuling<'_>| matches!(self.entry.policy.limit(ruling.limit).then.action, Action::Delay(_));
        let binding = rulings.iter().filter(|ruling| ruling.denies.is_some() && !ruling.shadow);
        binding.filter(|ruling| ruling.outright || ruling.banned || !delays(ruling)).collect()
    }

    /// How long a ruling says to wait. For a ban that begins with this request it is zero: the gateway begins the
    /// ban and knows its length.
    fn wait(&self, ruling: &LimitRuling<'_>) -> Option<RetryWait> {
        let begins = matches!(self.entry.policy.limit(ruling.limit).then.action, Action::Ban(_)) && !ruling.banned;
        ruling.denies.map(|wait| match wait {
            RetryWait::For(_) if begins => RetryWait::For(Duration::ZERO),
            wait => wait,
        })
    }

    fn severity(&self, ruling: &LimitRuling<'_>) -> ActionSeverity {
        match &self.entry.policy.limit(ruling.limit).then.action {
            _ if ruling.outright => ActionSeverity::Deny,
            _ if ruling.banned => ActionSeverity::Ban,
            action => action.severity(),
        }
    }

    fn penalty(&self, ruling: &LimitRuling<'_>) -> Penalty {
        match (&self.entry.policy.limit(ruling.limit).then.action, ruling.key) {
            _ if ruling.outright => Penalty::None,
            _ if ruling.banned => Penalty::Ban,
            (Action::Ban(_), _) => Penalty::Ban,
            (Action::Tarpit(span), _) => Penalty::Tarpit(*span),
            (Action::Challenge, Some(key)) => Penalty::Challenge(key),
            _ => Penalty::None,
        }
    }

    /// The longest of the delays whose limits have no room.
    fn delay<'r, 'v>(&self, rulings: &'r [LimitRuling<'v>]) -> Option<(&'r LimitRuling<'v>, Duration)> {
        let delays = rulings.iter().filter(|ruling| ruling.denies.is_some() && !ruling.shadow);
        let spans = delays.filter_map(|ruling| match self.entry.policy.limit(ruling.limit).then.action {
            Action::Delay(span) => Some((ruling, span)),
            _ => None,
        });
        spans.reduce(|longest, next| if next.1 > longest.1 { next } else { longest })
    }

    /// Every key that a limit with `ban` denies and that was not banned before.
    fn new_bans(&self, verdicts: &[Verdict]) -> SmallVec<[NewBan; 1]> {
        let denied = self.batch().charges.iter().zip(verdicts).filter(|(_, verdict)| !verdict.passes());
        let new_bans = denied.filter_map(|(charge, _)| {
            let planned = &self.limits[usize::from(charge.limit)];
            let bans = matches!(self.entry.policy.limit(planned.limit).then.action, Action::Ban(_));
            let begins = bans && charge.force == Force::Binding && planned.banned.is_none();
            begins.then_some(NewBan { limit: planned.limit, key: charge.key })
        });
        new_bans.collect()
    }

    /// How each limit of the plan decided.
    fn rulings<'v>(&self, verdicts: &'v [Verdict]) -> SmallVec<[LimitRuling<'v>; 4]> {
        let mut verdicts = self.batch().charges.iter().zip(verdicts).peekable();
        let mut rulings = SmallVec::new();
        for (number, planned) in (0..).zip(&self.limits) {
            let shadow = self.entry.policy.limit(planned.limit).shadow;
            let mut denies = planned
                .outright
                .then_some(RetryWait::Forever)
                .max(planned.banned.map(|(left, _)| RetryWait::For(left)));
            let mut key = planned.banned.map(|(_, key)| key);
            let mut tightest: Option<&Verdict> = None;
            while let Some((charge, verdict)) = verdicts.next_if(|(charge, _)| charge.limit == number) {
                if verdict.is_exempt {
                    continue;
                }
                let wait = verdict.retry_after.map(RetryWait::For);
                // The length of a ban does not depend on what was counted since.
                if planned.banned.is_none() {
                    if wait.is_some() && (key.is_none() || wait > denies) {
                        key = Some(charge.key);
                    }
                    denies = denies.max(wait);
                }
                if tightest.is_none_or(|so_far| left(verdict) < left(so_far)) {
                    tightest = Some(verdict);
                }
            }
            if denies.is_none() && tightest.is_none() {
                continue;
            }
            let standings = tightest.map(|verdict| &verdict.standings);
            let (outright, banned) = (planned.outright, planned.banned.is_some());
            rulings.push(LimitRuling { limit: planned.limit, shadow, outright, banned, denies, key, standings });
        }
        rulings
    }

    /// The concurrency slots that the store has taken for this request.
    fn slots(&self, verdicts: &[Verdict], rulings: &[LimitRuling<'_>], passes: bool) -> SmallVec<[KeyHash; 2]> {
        let asked = self.batch().charges.iter().zip(verdicts).filter(|(_, verdict)| !verdict.is_exempt);
        let concurrent = asked.filter(|(charge, _)| matches!(charge.rule, Rule::Concurrent(_)));
        let taken = concurrent.filter(|(charge, verdict)| match charge.force {
            Force::Binding => passes,
            Force::Delay => passes && verdict.passes(),
            Force::Shadow => {
                let limit = self.limits[usize::from(charge.limit)].limit;
                rulings.iter().any(|ruling| ruling.limit == limit && ruling.denies.is_none())
            }
        });
        taken.map(|(charge, _)| charge.key).collect()
    }

    /// What the outcome will settle. A denied request has only charges of shadow limits to settle.
    fn pending(&self, verdicts: &[Verdict], passes: bool) -> Option<Box<PendingOutcome>> {
        let route = self.outcome?;
        let charges = &self.batch().charges;
        let mut pending = SmallVec::new();
        for (charge, verdict) in charges.iter().zip(verdicts).filter(|(_, verdict)| !verdict.is_exempt) {
            let PlannedLimit { limit: id, is_undisputed, .. } = self.limits[usize::from(charge.limit)];
            let limit = self.entry.policy.limit(id);
            let waits = limit.count.outcome().is_some() || limit.reset_on.is_some();
            if !waits || !(passes || verdict.charged.is_some()) {
                continue;
            }
            pending.push(super::settle::PendingCharge {
                limit: id,
                key: charge.key,
                items: charge.items.clone(),
                charged: verdict.charged.clone(),
                may_reset: is_undisputed && charges.iter().filter(|other| other.limit == charge.limit).count() == 1,
            });
        }
        let known_client = self.known_client.filter(|_| passes);
        let enrollment = self.device.enrollment.clone().filter(|_| passes);
        Some(Box::new(PendingOutcome { route, charges: pending, known_client, enrollment }))
    }
}

/// Orders the keys of one limit: the one with the least left comes first.
fn left(verdict: &Verdict) -> (u64, std::cmp::Reverse<Option<Duration>>) {
    let remaining = verdict.standings.iter().map(|standing| standing.remaining).min();
    (remaining.unwrap_or(u64::MAX), std::cmp::Reverse(verdict.retry_after))
}

impl From<&LimitRuling<'_>> for LimitReport {
    fn from(ruling: &LimitRuling<'_>) -> Self {
        let LimitRuling { limit, shadow, denies, standings, .. } = *ruling;
        Self {
            limit,
            shadow,
            denied: denies.is_some(),
            standings: standings.map_or_else(Standings::new, |all| Standings::from_slice(all)),
        }
    }
}
