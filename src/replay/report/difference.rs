//! Who would be treated differently by two configurations.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;

use super::Tally;
use super::counts::passes;
use super::tally::TallyReport;
use crate::decision::Policy;
use crate::gateway::decide::record::Decider;
use crate::record::DecisionLabel;
use crate::replay::SimulatedDecision;

/// The requests that became something else, by what decided.
#[derive(Clone, Debug, Default)]
pub struct Differences(BTreeMap<(Arc<str>, &'static str, &'static str), Tally>);

/// Requests that one limit treats differently.
#[derive(Clone, Debug, Serialize)]
pub struct DifferenceReport {
    /// The limit, or the list, that makes the difference: of the new configuration where that is stricter, else of the
    /// old one. `-` where neither was a limit or a list.
    pub limit: Arc<str>,
    /// The decision under the old configuration.
    pub before: &'static str,
    pub now: &'static str,
    #[serde(flatten)]
    pub tally: TallyReport,
}

impl Differences {
    pub fn add(
        &mut self,
        client: IpAddr,
        (policy, now): (&Policy, &SimulatedDecision),
        (old_policy, before): (&Policy, &SimulatedDecision),
    ) {
        let labels = (before.record.label, now.record.label);
        if labels.0 == labels.1 {
            return;
        }
        let by = if is_stricter(labels.1, labels.0) { decider(policy, now) } else { decider(old_policy, before) };
        let key = (by, labels.0.as_str(), labels.1.as_str());
        self.0.entry(key).or_default().add(now.at, client);
    }

    /// The most frequent first.
    pub fn reports(&self) -> Vec<DifferenceReport> {
        let reports = self.0.iter().map(|((limit, before, now), tally)| DifferenceReport {
            limit: Arc::clone(limit),
            before,
            now,
            tally: tally.report(),
        });
        let mut reports: Vec<_> = reports.collect();
        reports.sort_by_key(|report| std::cmp::Reverse(report.tally.count));
        reports
    }
}

/// Whether the client gets less: a request that passes at once, is delayed, is denied.
fn is_stricter(now: DecisionLabel, before: DecisionLabel) -> bool {
    let rank = |label| match label {
        DecisionLabel::Allowed => 0,
        DecisionLabel::Delayed => 1,
        label if passes(label) => 1,
        _ => 2,
    };
    rank(now) >= rank(before)
}

fn decider(policy: &Policy, decision: &SimulatedDecision) -> Arc<str> {
    match &decision.record.decider {
        Decider::Limit(limit) => Arc::clone(&policy.limit(*limit).name),
        Decider::List(list) => Arc::clone(list),
        Decider::Nothing => Arc::from("-"),
    }
}
