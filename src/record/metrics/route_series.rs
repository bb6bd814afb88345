//! Which routes have series of their own in the metrics.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::encoding::MetricEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::TypedMetric;

use crate::record::NO_ROUTE_LABEL;
use crate::record::OTHER_ROUTES_LABEL;

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

/// Labels, one of which is a route.
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
