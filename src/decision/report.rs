//! How each limit decided a request: for response headers, the log and metrics.

use std::time::Duration;

use smallvec::SmallVec;

use crate::limit::ActionSeverity;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rates;
use crate::limit::Standing;
use crate::request::NotUnderstood;
use crate::units::whole_seconds;

/// The limits that a request met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitReports {
    /// Each limit that decided, in the order of the plan.
    pub limits: SmallVec<[LimitReport; 4]>,
    /// Of all rates that responses may show, the one with the smallest remaining share of its quota; of equal ones the
    /// rate that takes longer to recover.
    pub closest: Option<RateReport>,
    /// Why a part that a limit counts is not understood, so that the request also counts under the empty value.
    pub unread: Option<NotUnderstood>,
}

/// How one limit decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LimitReport {
    pub limit: LimitId,
    pub shadow: bool,
    /// What the limit does to the request. `None`: it lets it pass. A shadow limit only would.
    pub applied: Option<ActionSeverity>,
    /// Responses may show its state: it is known, and the limit does not hide it.
    pub is_shown: bool,
    pub found: FoundKey,
}

/// What a request has of the key of a limit.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum FoundKey {
    #[default]
    Whole,
    /// It lacks a part.
    Lacking,
    /// A name in it does not match the `pattern` of its part.
    Unmatched,
}

/// Where a key stands under one rate of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateReport {
    pub limit: LimitId,
    /// The position of the rate in the limit.
    pub rate: u16,
    pub quota: u32,
    /// In units of the quota.
    pub remaining: u64,
    pub reset: Duration,
}

impl LimitReports {
    /// A limit denies the request and does nothing besides.
    pub fn set_denied(&mut self, limit: LimitId) {
        for report in self.limits.iter_mut().filter(|report| report.limit == limit) {
            report.applied = Some(ActionSeverity::Deny);
        }
    }

    /// Adds what a limit does to a request, and what that has of the key. `standings` are those of its key with
    /// the least left; empty where that is not known.
    pub fn add(
        &mut self,
        id: LimitId,
        limit: &Limit,
        applied: Option<ActionSeverity>,
        found: FoundKey,
        standings: &[Standing],
    ) {
        let shown = limit.shown_rates().filter(|_| !standings.is_empty());
        self.limits.push(LimitReport { limit: id, shadow: limit.shadow, applied, is_shown: shown.is_some(), found });
        for (position, rate) in (0_u16..).zip(shown.map_or(&[][..], Rates::as_slice)) {
            let Some(&Standing { remaining, reset }) = standings.get(usize::from(position)) else { break };
            let rate = RateReport { limit: id, rate: position, quota: rate.count.get(), remaining, reset };
            if self.closest.is_none_or(|best| rate.is_closer_than(best)) {
                self.closest = Some(rate);
            }
        }
    }
}

impl RateReport {
    fn is_closer_than(self, other: Self) -> bool {
        let own = u128::from(self.remaining) * u128::from(other.quota);
        let others = u128::from(other.remaining) * u128::from(self.quota);
        own < others || own == others && whole_seconds(self.reset) > whole_seconds(other.reset)
    }
}
