//! Routes, and the conditions under which a request takes one.

pub mod condition;
pub mod definition;
pub mod host;
mod inclusion;
pub mod known_clients;
pub mod method;
pub mod path_regex;
pub mod pattern;
pub mod readings;
pub mod table;

pub use self::condition::Condition;
pub use self::condition::InvalidMatch;
pub use self::definition::Route;
pub use self::definition::RouteId;
pub use self::definition::UpstreamId;
pub use self::host::HostPattern;
pub use self::host::InvalidHostPattern;
pub use self::known_clients::KnownBy;
pub use self::known_clients::KnownClients;
pub use self::method::InvalidMethod;
pub use self::method::MethodName;
pub use self::method::MethodSet;
pub use self::path_regex::InvalidPathRegex;
pub use self::path_regex::PathRegex;
pub use self::pattern::Case;
pub use self::pattern::InvalidPathPattern;
pub use self::pattern::PathPattern;
pub use self::readings::BodyMethods;
pub use self::readings::Certainty;
pub use self::readings::RequestReadings;
pub use self::table::RouteTable;
pub use self::table::Walk;
