//! The decision on a request.

use std::time::Duration;

use smallvec::SmallVec;

use super::Denial;
use super::LimitReports;
use super::MetLimit;
use super::PendingOutcome;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::pool::Pooled;
use crate::route::RouteId;
use crate::route::UpstreamId;

/// The decision on a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all requests pass, and a box for each would cost memory")]
pub enum Decision {
    Pass(Pass),
    /// On the heap, so that the value for most requests, which pass, stays small.
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
    /// What waits for the outcome; `None`: no limit counts by outcome.
    pub pending: Option<Box<PendingOutcome>>,
    pub report: LimitReports,
    /// Every limit that the request met, if one delays it.
    pub met: Vec<MetLimit>,
}
