//! The names under which requests on no route are counted. No route may have them.

/// The value of the label `route` in metrics.
pub const NO_ROUTE_LABEL: &str = "none";

/// The name in the history and in what a replay reports.
pub const NO_ROUTE: &str = "-";
