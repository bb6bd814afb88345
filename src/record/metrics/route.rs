//! The metrics of one route.

use std::array;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use http::StatusCode;
use prometheus_client::metrics::counter::Counter;

use super::Histogram;
use super::Metrics;
use crate::outcome::Outcome;
use crate::record::DecisionLabel;
use crate::record::NO_ROUTE_LABEL;
use crate::record::ObservedOutcome;

/// A counter is created when it is first added to, so that a scrape has no rows of zeros.
#[derive(Debug)]
pub(in crate::record) struct RouteMetrics {
    pub(in crate::record) name: Arc<str>,
    /// These are the requests without a route.
    is_unrouted: bool,
    /// By decision and class of the status.
    requests: [[OnceLock<Counter>; STATUS_CLASSES.len()]; DecisionLabel::ALL.len()],
    /// By outcome, the unknown one last.
    outcomes: [OnceLock<Counter>; Outcome::ALL.len() + 1],
    pub(in crate::record) request_duration: Histogram,
    pub(in crate::record) decision_duration: Histogram,
    /// A proxy has asked about a request that passed. Only advice reads it.
    pub(in crate::record) is_asked_about: AtomicBool,
}

const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

impl RouteMetrics {
    /// `None`: of requests without a route.
    pub(in crate::record) fn new(metrics: &Metrics, route: Option<Arc<str>>) -> Self {
        let is_unrouted = route.is_none();
        let name = route.unwrap_or_else(|| NO_ROUTE_LABEL.into());
        Self {
            is_unrouted,
            requests: array::from_fn(|_| array::from_fn(|_| OnceLock::new())),
            outcomes: array::from_fn(|_| OnceLock::new()),
            request_duration: metrics.request_duration(&name),
            decision_duration: metrics.decision_duration(&name),
            name,
            is_asked_about: AtomicBool::new(false),
        }
    }

    pub(in crate::record) fn requests(
        &self,
        metrics: &Metrics,
        decision: DecisionLabel,
        status: Option<StatusCode>,
    ) -> &Counter {
        let class = status.map_or(0, |status| usize::from(status.as_u16() / 100).min(5));
        self.requests[decision as usize][class]
            .get_or_init(|| metrics.requests(self.route(), decision.as_str(), STATUS_CLASSES[class]))
    }

    fn route(&self) -> Option<&Arc<str>> {
        if self.is_unrouted { None } else { Some(&self.name) }
    }

    pub(in crate::record) fn outcomes(&self, metrics: &Metrics, outcome: ObservedOutcome) -> &Counter {
        let position = match outcome {
            ObservedOutcome::Known(outcome) => outcome as usize,
            ObservedOutcome::Unknown => Outcome::ALL.len(),
        };
        self.outcomes[position].get_or_init(|| metrics.outcomes(&self.name, outcome.as_str()))
    }
}
