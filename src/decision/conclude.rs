//! The third step: verdicts into one decision, the severest first.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::Plan;
use super::Reservation;
use super::Verdict;
use crate::limit::DenyResponse;
use crate::limit::LimitId;
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
    /// How it is to look: the limit's own, else the route's, else the default.
    pub response: &'a DenyResponse,
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
    /// Limits deny it. `retry_after` is the longest wait of those whose `headers` show one.
    Limited { limits: SmallVec<[LimitId; 2]>, retry_after: Option<Duration> },
}

/// What response headers, log and metrics say about the limits a request met.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Each limit decided, in the order of the plan.
    pub limits: SmallVec<[LimitReport; 4]>,
}

/// How one limit decided, and where its key (the one with the least left) stands.
#[derive(Clone, Debug)]
pub struct LimitReport {
    pub limit: LimitId,
    pub shadow: bool,
    pub denied: bool,
    pub standings: Standings,
}

impl<'a> Plan<'a> {
    /// `verdicts` answer the plan's batch, in its order.
    pub fn conclude(self, _verdicts: &[Verdict]) -> Decision<'a> {
        todo!()
    }
}
