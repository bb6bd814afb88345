//! How each limit decided a request: for response headers, the log and metrics.

use crate::limit::LimitId;
use crate::limit::Standings;

/// The limits that a request met.
#[derive(Clone, Debug, Default)]
pub struct LimitReports {
    /// Each limit that decided, in the order of the plan.
    pub limits: Vec<LimitReport>,
}

/// How one limit decided, and the standing of its key with the least left.
#[derive(Clone, Debug)]
pub struct LimitReport {
    pub limit: LimitId,
    pub shadow: bool,
    pub denied: bool,
    pub standings: Standings,
}
