//! The report of a replay, for people and for programs.
//!
//! - [`counts`]: what is counted while requests are replayed: how often something happened, to whom, and when most of all.
//! - this file: the report as a whole; `text`: in words.

pub mod counts;
mod text;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;

pub use self::counts::{BusiestClients, ReplayCounts, Tally};
pub(in crate::replay) use self::text::{counted, number};
use crate::gateway::stages::Decider;
use crate::record::{DecisionLabel, NO_ROUTE};
use crate::replay::input::log_file::LineCounts;
use crate::replay::report::counts::{Decisions, TallyReport};
use crate::replay::{LeftOut, SimulatedDecision};
use crate::rules::decision::Policy;
use crate::rules::limit::LimitId;

// The report of a replay as a whole.

/// The decisions that a configuration would have made on logged requests. Times are in RFC 3339, in UTC.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    /// The formats of the files.
    pub formats: Vec<&'static str>,
    pub files: usize,
    pub lines: LineCounts,
    /// Requests that were decided.
    pub requests: u64,
    /// Requests that the gateway refuses as malformed, before any rule.
    pub refused: u64,
    /// Requests whose line stood so far behind others that they were decided later than they came.
    pub late: u64,
    /// Requests from addresses that `trusted_proxies` names.
    pub from_trusted_proxies: u64,
    /// Requests whose outcome would be counted, and which the log does not tell.
    pub unknown_outcomes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub decisions: Decisions,
    /// Denials of any kind.
    pub denied: TallyReport,
    /// The limits that were replayed, in the order of the configuration.
    pub limits: Vec<LimitReport>,
    pub routes: Vec<RouteReport>,
    /// Denials by lists.
    pub lists: Vec<ListReport>,
    pub left_out: Vec<LeftOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstReport>,
}

/// The decisions of one limit.
#[derive(Clone, Debug, Serialize)]
pub struct LimitReport {
    pub name: Arc<str>,
    pub shadow: bool,
    /// The requests that it decided.
    pub met: u64,
    pub decisions: Decisions,
    pub shadow_denied: u64,
    /// The requests that it did not let pass at once.
    #[serde(flatten)]
    pub tally: TallyReport,
}

#[derive(Clone, Debug, Serialize)]
pub struct RouteReport {
    /// `-`: requests on no route.
    pub name: Arc<str>,
    pub requests: u64,
    pub decisions: Decisions,
}

#[derive(Clone, Debug, Serialize)]
pub struct ListReport {
    pub name: Arc<str>,
    #[serde(flatten)]
    pub tally: TallyReport,
}

/// The decisions of the old configuration, and the differences.
#[derive(Clone, Debug, Serialize)]
pub struct AgainstReport {
    pub decisions: Decisions,
    pub differences: Vec<DifferenceReport>,
    pub left_out: Vec<LeftOut>,
}

impl ReplayCounts {
    pub(in crate::replay) fn decisions(&self) -> Decisions {
        self.decisions.clone()
    }

    pub(in crate::replay) fn denied(&self) -> TallyReport {
        self.denied.report()
    }

    /// The limits that have a place in the policy.
    pub(in crate::replay) fn limit_reports(&self, policy: &Policy) -> Vec<LimitReport> {
        let on_routes = policy.routes.all().iter().flat_map(|route| &route.limits);
        let placed: Vec<LimitId> = policy.everywhere.iter().chain(on_routes).copied().collect();
        let limits = (0..).map(LimitId).zip(&policy.limits).zip(&self.limits);
        let limits = limits.filter(|((id, _), _)| placed.contains(id));
        let reports = limits.map(|((_, limit), counts)| LimitReport {
            name: Arc::clone(&limit.name),
            shadow: limit.shadow,
            met: counts.met,
            decisions: counts.decisions.clone(),
            shadow_denied: counts.shadow_denied,
            tally: counts.tally.report(),
        });
        reports.collect()
    }

    pub(in crate::replay) fn route_reports(&self, policy: &Policy) -> Vec<RouteReport> {
        let names = policy.routes.all().iter().map(|route| Arc::clone(&route.name));
        let routes = names.chain([Arc::from(NO_ROUTE)]).zip(self.routes[1..].iter().chain(&self.routes[..1]));
        let reports = routes.map(|(name, decisions)| RouteReport {
            name,
            requests: decisions.total(),
            decisions: decisions.clone(),
        });
        reports.collect()
    }

    pub(in crate::replay) fn list_reports(&self) -> Vec<ListReport> {
        let lists = self.lists.iter();
        lists.map(|(name, tally)| ListReport { name: Arc::clone(name), tally: tally.report() }).collect()
    }
}

// The clients that two configurations treat differently.

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
        label if label.passes() => 1,
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
