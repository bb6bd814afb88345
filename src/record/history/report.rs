//! The history as it is asked for, and the sum of several.

use std::collections::BTreeMap;

use super::series::STEPS_PER_MINUTE;
use super::series::Step;
use crate::clock::Timestamp;

/// The counts of each decision, in steps, by the name of a route or a limit.
pub type Counts = BTreeMap<String, BTreeMap<String, Vec<u64>>>;

/// What was counted in each step of a time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HistoryReport {
    /// When the first step begins.
    pub from: Timestamp,
    /// How many steps there are, the current one included.
    pub steps: u64,
    /// `-` stands for requests without a route.
    pub routes: Counts,
    pub limits: Counts,
}

impl HistoryReport {
    /// The steps of the last `minutes`, the current one last, in which nothing was counted yet.
    pub fn of_last(minutes: u64, now: Timestamp) -> Self {
        let steps = minutes * STEPS_PER_MINUTE;
        Self::empty(Step((Step::of(now).0 + 1).saturating_sub(steps)).begins(), steps)
    }

    pub(super) fn empty(from: Timestamp, steps: u64) -> Self {
        Self { from, steps, routes: Counts::new(), limits: Counts::new() }
    }

    /// Adds zeros where this route had no request of that decision.
    pub fn ensure_route(&mut self, name: &str, decision: &str) {
        ensure(&mut self.routes, self.steps, name, decision);
    }

    /// Adds zeros where this limit made no such decision.
    pub fn ensure_limit(&mut self, name: &str, decision: &str) {
        ensure(&mut self.limits, self.steps, name, decision);
    }
}

fn ensure(counts: &mut Counts, steps: u64, name: &str, decision: &str) {
    let decisions = counts.entry(name.to_owned()).or_default();
    decisions.entry(decision.to_owned()).or_insert_with(|| vec![0; usize::try_from(steps).unwrap_or_default()]);
}
