//! How each limit decided a request: for response headers, the log and metrics.

use crate::limit::LimitId;
use crate::limit::Standings;

/// What response headers, log and metrics say about the limits a request met.
#[derive(Clone, Debug, Default)]
pub struct LimitReports {
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
