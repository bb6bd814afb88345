//! The names under which requests on no route, or on several, are counted. No route may have them.

/// The value of the label `route` in metrics.
pub const NO_ROUTE_LABEL: &str = "none";

/// The value of that label for all routes that have no series of their own.
pub const OTHER_ROUTES_LABEL: &str = "other";

/// The name in the history and in what a replay reports.
pub const NO_ROUTE: &str = "-";
