//! What is counted while requests are replayed.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::Tally;
use super::decisions::Decisions;
use crate::decision::Policy;
use crate::gateway::decide::record::Decider;
use crate::limit::ActionSeverity;
use crate::record::DecisionLabel;
use crate::replay::SimulatedDecision;

/// What became of the requests under one configuration.
#[derive(Clone, Debug, Default)]
pub struct ReplayCounts {
    pub(super) decisions: Decisions,
    /// Of the requests that were denied in any way.
    pub(super) denied: Tally,
    /// By `LimitId`.
    pub(super) limits: Vec<LimitCounts>,
    /// First requests without a route, then by `RouteId`.
    pub(super) routes: Vec<Decisions>,
    /// Denials by lists of `access`, by name.
    pub(super) lists: BTreeMap<Arc<str>, Tally>,
}

/// What a limit did to the requests that it met.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitCounts {
    pub(super) met: u64,
    pub(super) decisions: Decisions,
    pub(super) shadow_denied: u64,
    /// Of everything that it did, in shadow mode too.
    pub(super) tally: Tally,
}

impl ReplayCounts {
    pub fn new(policy: &Policy) -> Self {
        Self {
            limits: vec![LimitCounts::default(); policy.limits.len()],
            routes: vec![Decisions::default(); policy.routes.all().len() + 1],
            ..Self::default()
        }
    }

    pub fn add(&mut self, client: IpAddr, decision: &SimulatedDecision) {
        let SimulatedDecision { at, record, .. } = decision;
        self.decisions.add(record.label);
        self.routes[record.route.map_or(0, |route| usize::from(route.0) + 1)].add(record.label);
        let is_denied = !passes(record.label);
        if is_denied {
            self.denied.add(*at, client);
        }
        if let Decider::List(list) = &record.decider {
            self.lists.entry(Arc::clone(list)).or_default().add(*at, client);
        }
        for report in &record.report.limits {
            let counts = &mut self.limits[usize::from(report.limit.0)];
            counts.met += 1;
            let Some(applied) = report.applied else { continue };
            if report.shadow {
                counts.shadow_denied += 1;
                counts.tally.add(*at, client);
                continue;
            }
            let is_decider = matches!(record.decider, Decider::Limit(limit) if limit == report.limit);
            let label = match applied {
                _ if is_decider => record.label,
                // It delays nothing that another limit denies.
                ActionSeverity::Delay if is_denied => continue,
                ActionSeverity::Delay => DecisionLabel::Delayed,
                ActionSeverity::Deny => DecisionLabel::Denied,
                ActionSeverity::Tarpit => DecisionLabel::Tarpitted,
                ActionSeverity::Ban => DecisionLabel::Banned,
                ActionSeverity::Challenge => DecisionLabel::Challenged,
            };
            counts.decisions.add(label);
            counts.tally.add(*at, client);
        }
    }
}

/// Whether the application gets such a request.
pub(super) fn passes(label: DecisionLabel) -> bool {
    matches!(label, DecisionLabel::Allowed | DecisionLabel::Delayed)
}
