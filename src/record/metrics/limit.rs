//! The counters of one limit.

use std::array;
use std::sync::Arc;
use std::sync::OnceLock;

use prometheus_client::metrics::counter::Counter;

use super::Metrics;
use crate::decision::FoundKey;
use crate::decision::LimitReport;
use crate::record::limit_decision::LimitDecision;

#[derive(Debug)]
pub(in crate::record) struct LimitMetrics {
    pub(in crate::record) name: Arc<str>,
    /// By decision.
    decisions: [OnceLock<Counter>; LimitDecision::COUNT],
    lacking: OnceLock<Counter>,
    unmatched: OnceLock<Counter>,
}

impl LimitMetrics {
    pub(in crate::record) fn new(name: &Arc<str>) -> Self {
        let decisions = array::from_fn(|_| OnceLock::new());
        Self { name: Arc::clone(name), decisions, lacking: OnceLock::new(), unmatched: OnceLock::new() }
    }

    /// Counts the decision about a request.
    pub(in crate::record) fn count(&self, metrics: &Metrics, report: LimitReport) {
        let decision = LimitDecision::of(report.shadow, report.applied);
        let counter = &self.decisions[decision as usize];
        counter.get_or_init(|| metrics.limit_decisions(&self.name, decision.as_str())).inc();
        let unusual = match report.found {
            FoundKey::Whole => return,
            FoundKey::Lacking => &self.lacking,
            FoundKey::Unmatched => &self.unmatched,
        };
        unusual.get_or_init(|| metrics.found_key_counter(&self.name, report.found)).inc();
    }
}
