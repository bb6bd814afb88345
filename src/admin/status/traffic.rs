//! What passed and what was denied in the last minute.

use std::collections::BTreeMap;
use std::ops::Add;

use serde::Serialize;
use utoipa::ToSchema;

use crate::record::DecisionLabel;
use crate::record::history::HistoryReport;

/// Requests of the last minute. Those that failed for another reason than a rule are in neither.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, ToSchema)]
pub(super) struct Traffic {
    /// Forwarded to the application, also after a delay.
    pub(super) passed: u64,
    /// Denied by a limit, a ban, a list or a challenge.
    pub(super) denied: u64,
}

impl Traffic {
    /// The sum of all steps.
    pub(super) fn of(report: &HistoryReport) -> Self {
        let count = |decisions: &[DecisionLabel]| -> u64 {
            let counted = |decisions_of_route: &BTreeMap<String, Vec<u64>>| -> u64 {
                decisions.iter().filter_map(|decision| decisions_of_route.get(decision.as_str())).flatten().sum()
            };
            report.routes.values().map(counted).sum()
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
