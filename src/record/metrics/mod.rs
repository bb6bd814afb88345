//! Counters, gauges and histograms for Prometheus, labelled only by names from the configuration.

pub mod names;

mod counted_route;
mod exposition;
mod gauges;
mod histogram;
mod labels;
mod limit;
mod notification;
mod process;
mod registry;
mod reload;
mod route;
mod route_series;
mod span;
mod store;
mod upstream;

pub(in crate::record) use self::counted_route::CountedRoute;
pub use self::exposition::Exposition;
pub use self::gauges::Gauges;
pub use self::gauges::ListGauge;
pub use self::histogram::Histogram;
pub(in crate::record) use self::limit::LimitMetrics;
pub(in crate::record) use self::notification::NotificationMetrics;
pub use self::registry::Metrics;
pub use self::reload::ReloadResult;
pub(in crate::record) use self::route::RouteMetrics;
pub use self::route_series::RouteSeries;
pub use self::route_series::ShownRoutes;
pub(in crate::record) use self::span::SpanMetrics;
pub use self::store::StoreMetrics;
pub use self::upstream::ServerNames;
pub(in crate::record) use self::upstream::UpstreamMetrics;
