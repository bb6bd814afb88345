//! The metrics of one route.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::{array, fmt};

use hashbrown::HashMap;
use http::StatusCode;
use parking_lot::RwLock;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::{MetricType, TypedMetric};

use super::{Histogram, Metrics};
use crate::record::{DecisionLabel, NO_ROUTE, NO_ROUTE_LABEL, OTHER_ROUTES_LABEL, ObservedOutcome};
use crate::rules::outcome::Outcome;

const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// A counter is created when it is first added to, and histograms with the first request, so that a scrape has no rows
/// of zeros for routes without requests.
#[derive(Debug)]
pub(in crate::record) struct RouteMetrics {
    pub(in crate::record) route: CountedRoute,
    /// By decision and class of the status.
    requests: [[OnceLock<Counter>; STATUS_CLASSES.len()]; DecisionLabel::ALL.len()],
    /// By outcome, the unknown one last.
    outcomes: [OnceLock<Counter>; Outcome::ALL.len() + 1],
    durations: OnceLock<Durations>,
    /// A proxy has asked about a request that passed. Only advice reads it.
    pub(in crate::record) has_unseen_answers: AtomicBool,
}

/// How long requests on a route take.
#[derive(Debug)]
pub(in crate::record) struct Durations {
    pub(in crate::record) request: Histogram,
    pub(in crate::record) decision: Histogram,
}

impl RouteMetrics {
    pub(in crate::record) fn new(route: CountedRoute) -> Self {
        Self {
            route,
            requests: array::from_fn(|_| array::from_fn(|_| OnceLock::new())),
            outcomes: array::from_fn(|_| OnceLock::new()),
            durations: OnceLock::new(),
            has_unseen_answers: AtomicBool::new(false),
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
        self.outcomes[position].get_or_init(|| metrics.outcomes(&self.route, outcome.as_str()))
    }

    pub(in crate::record) fn durations(&self, metrics: &Metrics) -> &Durations {
        self.durations.get_or_init(|| Durations {
            request: metrics.request_duration(self.route.label()),
            decision: metrics.decision_duration(self.route.label()),
        })
    }
}

// Which routes have series of their own in the metrics.

/// How many routes have series of their own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RouteSeries {
    #[default]
    All,
    /// So many, in the order in which routes are tried. All others are counted together.
    First(usize),
}

/// The routes of a configuration that a scrape shows.
#[derive(Clone, Debug, Default)]
pub enum ShownRoutes {
    #[default]
    All,
    Only(HashSet<Arc<str>>),
}

impl RouteSeries {
    /// `names`: of all routes, in order.
    pub fn shown<'n>(self, names: impl Iterator<Item = &'n Arc<str>>) -> ShownRoutes {
        match self {
            Self::All => ShownRoutes::All,
            Self::First(count) => ShownRoutes::Only(names.take(count).map(Arc::clone).collect()),
        }
    }

    /// Whether the route at this position has series of its own.
    pub fn has_own(self, position: usize) -> bool {
        match self {
            Self::All => true,
            Self::First(count) => position < count,
        }
    }
}

impl ShownRoutes {
    fn has(&self, label: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(label) || [NO_ROUTE_LABEL, OTHER_ROUTES_LABEL].contains(&label),
        }
    }
}

/// Labels that include a route.
pub(super) trait OfRoute: Clone + EncodeLabelSet + Eq + Hash {
    fn route(&self) -> &str;
}

/// A metric for each route. Clones share it. What is counted under a route that is not shown stays, for the history and for advice.
#[derive(Clone)]
pub(super) struct RouteFamily<L, M>(Arc<Shared<L, M>>);

struct Shared<L, M> {
    metrics: RwLock<HashMap<L, M>>,
    shown: RwLock<Arc<ShownRoutes>>,
}

impl<L: OfRoute, M: Clone + Default> RouteFamily<L, M> {
    pub(super) fn get_or_create(&self, labels: &L) -> M {
        if let Some(metric) = self.get(labels) {
            return metric;
        }
        self.0.metrics.write().entry(labels.clone()).or_default().clone()
    }

    pub(super) fn get(&self, labels: &L) -> Option<M> {
        self.0.metrics.read().get(labels).cloned()
    }

    /// Sets which routes the next scrape shows.
    pub(super) fn show(&self, routes: &Arc<ShownRoutes>) {
        *self.0.shown.write() = Arc::clone(routes);
    }
}

impl<L, M> Default for RouteFamily<L, M> {
    fn default() -> Self {
        Self(Arc::new(Shared { metrics: RwLock::default(), shown: RwLock::default() }))
    }
}

impl<L, M> fmt::Debug for RouteFamily<L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteFamily").field("shown", &self.0.shown).finish_non_exhaustive()
    }
}

impl<L: OfRoute, M: EncodeMetric + TypedMetric> EncodeMetric for RouteFamily<L, M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let shown = Arc::clone(&self.0.shown.read());
        for (labels, metric) in self.0.metrics.read().iter().filter(|(labels, _)| shown.has(labels.route())) {
            metric.encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }
}

impl<L, M: TypedMetric> TypedMetric for RouteFamily<L, M> {
    const TYPE: MetricType = M::TYPE;
}

// Under which name requests are counted.

/// The routes that are counted together.
#[derive(Clone, Debug)]
pub(in crate::record) enum CountedRoute {
    Named(Arc<str>),
    /// Requests on no route.
    NoRoute,
    /// All routes without series of their own together.
    Others,
}

impl CountedRoute {
    /// The value of the label `route`.
    pub(in crate::record) fn label(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::NoRoute => NO_ROUTE_LABEL,
            Self::Others => OTHER_ROUTES_LABEL,
        }
    }

    /// The name in the history and in events; `None`: what is counted here is there under other names.
    pub(in crate::record) fn name(&self) -> Option<Arc<str>> {
        match self {
            Self::Named(name) => Some(Arc::clone(name)),
            Self::NoRoute => Some(Arc::from(NO_ROUTE)),
            Self::Others => None,
        }
    }
}
