//! The report of a replay as a whole.

use std::sync::Arc;

use serde::Serialize;

use super::ReplayCounts;
use super::decisions::Decisions;
use super::difference::DifferenceReport;
use super::tally::TallyReport;
use crate::decision::Policy;
use crate::limit::LimitId;
use crate::record::NO_ROUTE;
use crate::replay::LeftOut;
use crate::replay::input::log_file::LineCounts;

/// What a configuration would have done to logged requests. Times are in RFC 3339, in UTC.
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
    /// In the order of the configuration, those that were replayed.
    pub limits: Vec<LimitReport>,
    pub routes: Vec<RouteReport>,
    /// Denials by lists.
    pub lists: Vec<ListReport>,
    pub left_out: Vec<LeftOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstReport>,
}

/// What a limit did.
#[derive(Clone, Debug, Serialize)]
pub struct LimitReport {
    pub name: Arc<str>,
    pub shadow: bool,
    /// The requests that it decided.
    pub met: u64,
    pub decisions: Decisions,
    pub shadow_denied: u64,
    /// Of the requests that it did not let pass at once.
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

/// What the old configuration did, and what is different.
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
