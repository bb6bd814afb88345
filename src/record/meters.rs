//! Counters by position: of routes, limits and upstreams.

use std::array;
use std::sync::Arc;
use std::sync::OnceLock;

use http::StatusCode;
use prometheus_client::metrics::counter::Counter;

use super::DecisionLabel;
use super::Metrics;
use super::ObservedOutcome;
use super::UpstreamRecord;
use super::histogram::Histogram;
use super::notify::WebhookChannel;
use crate::decision::LimitReport;
use crate::limit::Action;
use crate::outcome::Outcome;

/// The counters of one route. Those that were never added to do not exist, so that nobody reads rows of zeros.
#[derive(Debug)]
pub(super) struct RouteMeter {
    pub(super) name: Arc<str>,
    /// By decision and class of the status.
    pub(super) requests: [[OnceLock<Counter>; STATUS_CLASSES.len()]; DecisionLabel::ALL.len()],
    /// By meaning.
    pub(super) outcomes: [OnceLock<Counter>; Outcome::ALL.len() + 1],
    pub(super) request_duration: Histogram,
    pub(super) decision_duration: Histogram,
}

const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

impl RouteMeter {
    pub(super) fn new(metrics: &Metrics, name: Arc<str>) -> Self {
        Self {
            requests: array::from_fn(|_| array::from_fn(|_| OnceLock::new())),
            outcomes: array::from_fn(|_| OnceLock::new()),
            request_duration: metrics.request_duration(&name),
            decision_duration: metrics.decision_duration(&name),
            name,
        }
    }

    pub(super) fn requests(&self, metrics: &Metrics, decision: DecisionLabel, status: Option<StatusCode>) -> &Counter {
        let class = status.map_or(0, |status| usize::from(status.as_u16() / 100).min(5));
        self.requests[decision as usize][class]
            .get_or_init(|| metrics.requests(&self.name, decision.as_str(), STATUS_CLASSES[class]))
    }

    pub(super) fn outcomes(&self, metrics: &Metrics, meaning: ObservedOutcome) -> &Counter {
        let position = match meaning {
            ObservedOutcome::Known(outcome) => outcome as usize,
            ObservedOutcome::Unknown => Outcome::ALL.len(),
        };
        self.outcomes[position].get_or_init(|| metrics.outcomes(&self.name, meaning.as_str()))
    }
}

/// The counters of one limit.
#[derive(Debug)]
pub(super) struct LimitMeter {
    pub(super) name: Arc<str>,
    /// What it says of those beyond it.
    pub(super) denied: &'static str,
    /// By whether it is a shadow, and whether it denied.
    pub(super) decisions: [[OnceLock<Counter>; 2]; 2],
    /// Whom it tells.
    pub(super) channels: Vec<Arc<WebhookChannel>>,
}

impl LimitMeter {
    pub(super) fn new(name: &Arc<str>, action: &Action) -> Self {
        let denied = match action {
            Action::Deny(_) => "denied",
            Action::Delay(_) => "delayed",
            Action::Tarpit(_) => "tarpitted",
            Action::Ban(_) => "banned",
            Action::Challenge => "challenged",
        };
        let decisions = array::from_fn(|_| array::from_fn(|_| OnceLock::new()));
        Self { name: Arc::clone(name), denied, decisions, channels: Vec::new() }
    }

    pub(super) fn decisions(&self, metrics: &Metrics, report: &LimitReport) -> &Counter {
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

/// An upstream and its servers as the configuration writes them.
#[derive(Clone, Debug)]
pub struct ServerNames {
    pub upstream: Arc<str>,
    pub servers: Vec<Arc<str>>,
}

/// The counters of one upstream's servers.
#[derive(Debug)]
pub(super) struct UpstreamMeter {
    pub(super) name: Arc<str>,
    /// A handful at most: looking through them is quicker than hashing a name.
    pub(super) servers: Vec<(Arc<str>, Counter)>,
}

impl UpstreamMeter {
    pub(super) fn new(metrics: &Metrics, names: ServerNames) -> Self {
        let ServerNames { upstream, servers } = names;
        let counters = servers.into_iter().map(|server| {
            let counter = metrics.upstream_requests(&upstream, &server);
            (server, counter)
        });
        Self { servers: counters.collect(), name: upstream }
    }

    pub(super) fn count(&self, metrics: &Metrics, forwarded: UpstreamRecord<'_>) {
        let server = forwarded.server.unwrap_or_default();
        if let Some((_, counter)) = self.servers.iter().find(|(name, _)| **name == *server) {
            counter.inc();
        }
        if let Some(cause) = forwarded.failure {
            metrics.upstream_errors(&self.name, server, cause).inc();
        }
        for (server, cause) in forwarded.previous_attempts {
            metrics.upstream_errors(&self.name, server, cause).inc();
        }
    }
}
