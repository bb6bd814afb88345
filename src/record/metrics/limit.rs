//! The counters of one limit.

use std::array;
use std::sync::Arc;
use std::sync::OnceLock;

use prometheus_client::metrics::counter::Counter;

use super::Metrics;
use crate::decision::LimitReport;
use crate::record::limit_decision::LimitDecision;

#[derive(Debug)]
pub(in crate::record) struct LimitMetrics {
    pub(in crate::record) name: Arc<str>,
    /// By decision.
    decisions: [OnceLock<Counter>; LimitDecision::COUNT],
    lacking_part: OnceLock<Counter>,
}

impl LimitMetrics {
    pub(in crate::record) fn new(name: &Arc<str>) -> Self {
        let decisions = array::from_fn(|_| OnceLock::new());
        Self { name: Arc::clone(name), decisions, lacking_part: OnceLock::new() }
    }

    /// Counts the decision about a request.
    pub(in crate::record) fn count(&self, metrics: &Metrics, report: LimitReport) {
        let decision = LimitDecision::of(report.shadow, report.applied);
        let counter = &self.decisions[decision as usize];
        counter.get_or_init(|| metrics.limit_decisions(&self.name, decision.as_str())).inc();
        if report.lacks_part {
            self.lacking_part.get_or_init(|| metrics.lacking_part_counter(&self.name)).inc();
        }
    }
}
