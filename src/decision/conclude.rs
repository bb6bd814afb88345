//! The third step: verdicts into one decision, the severest first.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::Plan;
use super::Reservation;
use super::Verdict;
use super::batch::Force;
use crate::limit::DenyResponse;
use crate::limit::Detail;
use crate::limit::LimitId;
use crate::limit::Rule;
use crate::limit::Then;
use crate::limit::state::Standings;
use crate::route::RouteId;
use crate::route::UpstreamId;

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum Decision<'a> {
    Pass(Pass),
    Deny(Denial<'a>),
}

/// A request that is forwarded.
#[derive(Clone, Debug)]
pub struct Pass {
    pub route: Option<RouteId>,
    pub upstream: UpstreamId,
    /// Slots in flight to give back when the answer is through.
    pub reservations: SmallVec<[Reservation; 2]>,
    pub report: Report,
}

/// A request that is answered here.
#[derive(Clone, Debug)]
pub struct Denial<'a> {
    pub route: Option<RouteId>,
    pub cause: Cause,
    /// The limit that decided: of those that deny, the one with the longest wait; the first one where waits are equal.
    /// A limit that denies because a part of its key is missing comes before them: no wait ends that.
    pub limit: Option<LimitId>,
    /// How it is to look: that of the limit that decided, else of the route, else the general one. The most particular
    /// one given counts whole; what it leaves open is as built in, not as a more general one says.
    pub response: &'a DenyResponse,
    /// Slots that shadow limits took, which are counted as if they were in force alone: to give back at once.
    pub reservations: SmallVec<[Reservation; 2]>,
    pub report: Report,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The client stands on a deny list: 403.
    Listed { list: Arc<str> },
    /// The route is for members of other lists only: 403.
    NotOnList,
    /// A field was sent more often than anyone honest sends it: 400.
    TooManyValues,
    /// Limits deny it, in the order of the configuration. `retry_after` is the longest wait of those whose `headers`
    /// show one: none at all for a limit that denies what is missing; `None` where no limit shows any.
    Limited { limits: SmallVec<[LimitId; 2]>, retry_after: Option<Duration> },
}

/// What response headers, log and metrics say about the limits a request met.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Each limit decided, in the order of the plan.
    pub limits: Vec<LimitReport>,
}

/// How one limit decided, and where its key (the one with the least left) stands.
#[derive(Clone, Debug)]
pub struct LimitReport {
    pub limit: LimitId,
    pub shadow: bool,
    pub denied: bool,
    pub standings: Standings,
}

/// How one limit decided over all keys it counts a request under.
struct Ruling<'v> {
    limit: LimitId,
    shadow: bool,
    /// `None`: it lets the request pass.
    denies: Option<Wait>,
    standings: Option<&'v Standings>,
}

/// How long until a limit would let a request pass, shortest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Wait {
    For(Duration),
    Forever,
}

impl<'a> Plan<'a> {
    /// `verdicts` answer the plan's batch, in its order.
    pub fn conclude(self, verdicts: &[Verdict]) -> Decision<'a> {
        let policy = self.policy;
        let route = self.route.map(|route| policy.routes.get(route));
        if let Some(cause) = self.refusal {
            let reservations = SmallVec::new();
            let (response, report) = (&policy.deny_response, Report::default());
            return Decision::Deny(Denial { route: self.route, cause, limit: None, response, reservations, report });
        }
        let rulings = self.rulings(verdicts);
        let denying = || rulings.iter().filter(|ruling| !ruling.shadow).filter_map(|r| Some((r.limit, r.denies?)));
        let decisive = denying().reduce(|longest, next| if next.1 > longest.1 { next } else { longest });
        let reservations = self.reservations(&rulings, decisive.is_none());
        let report = Report { limits: rulings.iter().map(LimitReport::from).collect() };
        let Some((decisive, _)) = decisive else {
            let upstream = route.map_or(policy.upstream, |route| route.upstream);
            return Decision::Pass(Pass { route: self.route, upstream, reservations, report });
        };
        let limits = denying().map(|(limit, _)| limit).collect();
        let shown = denying().filter(|&(limit, _)| policy.limit(limit).headers != Detail::None);
        // A request that brings what was missing may come at once.
        let waits = shown.map(|(_, wait)| if let Wait::For(wait) = wait { wait } else { Duration::ZERO });
        let retry_after = waits.max();
        let Then::Deny(own) = &policy.limit(decisive).then;
        let of_route = || route.and_then(|route| route.deny_response.as_deref());
        Decision::Deny(Denial {
            route: self.route,
            cause: Cause::Limited { limits, retry_after },
            limit: Some(decisive),
            response: own.as_deref().or_else(of_route).unwrap_or(&policy.deny_response),
            reservations,
            report,
        })
    }

    /// How each limit decided that was asked, or that needs no asking.
    fn rulings<'v>(&self, verdicts: &'v [Verdict]) -> SmallVec<[Ruling<'v>; 4]> {
        let mut answers = self.batch().charges.iter().zip(verdicts).peekable();
        let mut rulings = SmallVec::new();
        for (number, planned) in (0..).zip(&self.limits) {
            let shadow = self.policy.limit(planned.limit).shadow;
            let mut denies = planned.outright.then_some(Wait::Forever);
            let mut tightest: Option<&Verdict> = None;
            while let Some((_, verdict)) = answers.next_if(|(charge, _)| charge.limit == number) {
                denies = denies.max(verdict.retry_after.map(Wait::For));
                if tightest.is_none_or(|so_far| left(verdict) < left(so_far)) {
                    tightest = Some(verdict);
                }
            }
            if denies.is_none() && tightest.is_none() {
                continue;
            }
            let standings = tightest.map(|verdict| &verdict.standings);
            rulings.push(Ruling { limit: planned.limit, shadow, denies, standings });
        }
        rulings
    }

    /// The slots in flight that the store has taken for this request.
    fn reservations(&self, rulings: &[Ruling<'_>], passes: bool) -> SmallVec<[Reservation; 2]> {
        let concurrent = self.batch().charges.iter().filter(|charge| matches!(charge.rule, Rule::Concurrent(_)));
        let taken = concurrent.filter(|charge| match charge.force {
            Force::Binding => passes,
            Force::Shadow => {
                let limit = self.limits[usize::from(charge.limit)].limit;
                rulings.iter().any(|ruling| ruling.limit == limit && ruling.denies.is_none())
            }
        });
        taken.map(|charge| Reservation { key: charge.key }).collect()
    }
}

/// What orders the keys of one limit by how little is left.
fn left(verdict: &Verdict) -> (u64, std::cmp::Reverse<Option<Duration>>) {
    let remaining = verdict.standings.iter().map(|standing| standing.remaining).min();
    (remaining.unwrap_or(u64::MAX), std::cmp::Reverse(verdict.retry_after))
}

impl From<&Ruling<'_>> for LimitReport {
    fn from(ruling: &Ruling<'_>) -> Self {
        let Ruling { limit, shadow, denies, standings } = *ruling;
        Self {
            limit,
            shadow,
            denied: denies.is_some(),
            standings: standings.map_or_else(Standings::new, |all| Standings::from_slice(all)),
        }
    }
}
