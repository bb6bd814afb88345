//! What passed and what was denied in the last minute.

use std::ops::Add;

use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::wall;
use crate::record::DecisionLabel;
use crate::record::Metrics;

/// Requests of the last minute. Those that failed for another reason than a rule are in neither.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub(super) struct Traffic {
    /// Forwarded to the application, also after a delay.
    pub(super) passed: u64,
    /// Denied by a limit, a ban, a list or a challenge.
    pub(super) denied: u64,
}

impl Traffic {
    /// In this process.
    pub(super) fn of_last_minute(metrics: &Metrics) -> Self {
        let report = metrics.history().report(1, wall());
        let count = |decisions: &[DecisionLabel]| {
            let of_route = |counts: &std::collections::BTreeMap<String, Vec<u64>>| -> u64 {
                decisions.iter().filter_map(|decision| counts.get(decision.as_str())).flatten().sum()
            };
            report.routes.values().map(of_route).sum()
        };
        Self { passed: count(&PASSED), denied: count(&DENIED) }
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { passed: self.passed.saturating_add(other.passed), denied: self.denied.saturating_add(other.denied) }
    }
}

const PASSED: [DecisionLabel; 2] = [DecisionLabel::Allowed, DecisionLabel::Delayed];

const DENIED: [DecisionLabel; 5] = [
    DecisionLabel::Denied,
    DecisionLabel::Banned,
    DecisionLabel::Listed,
    DecisionLabel::Tarpitted,
    DecisionLabel::Challenged,
];
