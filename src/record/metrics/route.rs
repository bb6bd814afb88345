//! The metrics of one route.

use std::array;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use http::StatusCode;
use prometheus_client::metrics::counter::Counter;

use super::CountedRoute;
use super::Histogram;
use super::Metrics;
use crate::outcome::Outcome;
use crate::record::DecisionLabel;
use crate::record::ObservedOutcome;

/// A counter is created when it is first added to, and histograms with the first request, so that a scrape has no rows of zeros
/// for routes that nobody asks for.
#[derive(Debug)]
pub(in crate::record) struct RouteMetrics {
    pub(in crate::record) route: CountedRoute,
    /// By decision and class of the status.
    requests: [[OnceLock<Counter>; STATUS_CLASSES.len()]; DecisionLabel::ALL.len()],
    /// By outcome, the unknown one last.
    outcomes: [OnceLock<Counter>; Outcome::ALL.len() + 1],
    durations: OnceLock<Durations>,
    /// A proxy has asked about a request that passed. Only advice reads it.
    pub(in crate::record) is_asked_about: AtomicBool,
}

/// How long requests on a route take.
#[derive(Debug)]
pub(in crate::record) struct Durations {
    pub(in crate::record) request: Histogram,
    pub(in crate::record) decision: Histogram,
}

const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

impl RouteMetrics {
    pub(in crate::record) fn new(route: CountedRoute) -> Self {
        Self {
            route,
            requests: array::from_fn(|_| array::from_fn(|_| OnceLock::new())),
            outcomes: array::from_fn(|_| OnceLock::new()),
            durations: OnceLock::new(),
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
            .get_or_init(|| metrics.requests(&self.route, decision.as_str(), STATUS_CLASSES[class]))
    }

    pub(in crate::record) fn outcomes(&self, metrics: &Metrics, outcome: ObservedOutcome) -> &Counter {
        let position = match outcome {
            ObservedOutcome::Known(outcome) => outcome as usize,
            ObservedOutcome::Unknown => Outcome::ALL.len(),
        };
        self.outcomes[position].get_or_init(|| metrics.outcomes(self.route.label(), outcome.as_str()))
    }

    pub(in crate::record) fn durations(&self, metrics: &Metrics) -> &Durations {
        self.durations.get_or_init(|| Durations {
            request: metrics.request_duration(self.route.label()),
            decision: metrics.decision_duration(self.route.label()),
        })
    }
}
