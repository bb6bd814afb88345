//! The counters of one limit.

use std::array;
use std::sync::Arc;
use std::sync::OnceLock;

use prometheus_client::metrics::counter::Counter;

use super::Metrics;
use crate::decision::LimitReport;
use crate::limit::Action;

#[derive(Debug)]
pub(in crate::record) struct LimitMetrics {
    pub(in crate::record) name: Arc<str>,
    /// The label for a request that the limit denies.
    denied: &'static str,
    /// By whether the limit is a shadow, and whether it denied.
    decisions: [[OnceLock<Counter>; 2]; 2],
    lacking_part: OnceLock<Counter>,
}

impl LimitMetrics {
    pub(in crate::record) fn new(name: &Arc<str>, action: &Action) -> Self {
        let denied = match action {
            Action::Deny(_) => "denied",
            Action::Delay(_) => "delayed",
            Action::Tarpit(_) => "tarpitted",
            Action::Ban(_) => "banned",
            Action::Challenge => "challenged",
        };
        let decisions = array::from_fn(|_| array::from_fn(|_| OnceLock::new()));
        Self { name: Arc::clone(name), denied, decisions, lacking_part: OnceLock::new() }
    }

    /// Counts the decision about a request.
    pub(in crate::record) fn count(&self, metrics: &Metrics, report: LimitReport) {
        self.decisions(metrics, report).inc();
        if report.lacks_part {
            self.lacking_part.get_or_init(|| metrics.lacking_part_counter(&self.name)).inc();
        }
    }

    fn decisions(&self, metrics: &Metrics, report: LimitReport) -> &Counter {
        let decision = match (report.shadow, report.denied) {
            (false, false) => "allowed",
            (false, true) => self.denied,
            (true, false) => "shadow_allowed",
            (true, true) => "shadow_denied",
        };
        self.decisions[usize::from(report.shadow)][usize::from(report.denied)]
            .get_or_init(|| metrics.limit_decisions(&self.name, decision))
    }
}
