//! Routes, and the conditions under which a request takes one.

pub mod condition;
mod inclusion;
mod index;
pub mod path_regex;
pub mod pattern;
pub mod table;

pub use self::condition::{
    Condition, HostPattern, InvalidHostPattern, InvalidMatch, InvalidMethod, METHOD_MARKS, MethodName, MethodSet,
};
pub use self::inclusion::{UnreachableRoute, unreachable_routes};
pub use self::path_regex::{InvalidPathRegex, PathRegex};
pub use self::pattern::{Case, InvalidPathPattern, PathPattern};
pub use self::table::{
    BodyMethods, Certainty, CookieNames, KnownBy, KnownClients, RequestReadings, Route, RouteId, RouteTable,
    SessionCarrier, SessionCarriers, SessionRule, UpstreamId, Walk,
};
