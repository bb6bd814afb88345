//! Counters, gauges and histograms for Prometheus, labelled only by names from the configuration.

mod counters;
mod gauges;
mod registry;
mod route;
mod table;

pub use self::counters::{Histogram, ReloadResult, ServerNames, StoreMetrics};
pub(in crate::record) use self::counters::{LimitMetrics, NotificationMetrics, SpanMetrics, UpstreamMetrics};
pub use self::registry::{Exposition, Metrics};
pub(in crate::record) use self::route::{CountedRoute, RouteMetrics};
pub use self::route::{RouteSeries, ShownRoutes};
pub(in crate::record) use self::table::WriterHealth;
pub use self::table::{Fault, Gauges, ListGauge};
