//! What becomes of a request: the last word of the rules.

use std::time::Duration;

use smallvec::SmallVec;

use super::Denial;
use super::LimitReports;
use super::PendingOutcome;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::route::RouteId;
use crate::route::UpstreamId;

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum Decision<'a> {
    Pass(Pass),
    /// In a box: most requests pass, and what is handed on for them stays small.
    Deny(Box<Denial<'a>>),
}

/// A request that is forwarded.
#[derive(Clone, Debug)]
pub struct Pass {
    pub route: Option<RouteId>,
    pub upstream: UpstreamId,
    /// The limit that delays it, and how long it is held before it is forwarded.
    pub delay: Option<(LimitId, Duration)>,
    /// What that limit counts it under.
    pub delayed_key: Option<KeyHash>,
    /// Slots in flight to give back when the answer is through.
    pub slots: SmallVec<[KeyHash; 2]>,
    /// What waits for the outcome; `None`: nobody asks what the answer means.
    pub pending: Option<Box<PendingOutcome>>,
    pub report: LimitReports,
}
