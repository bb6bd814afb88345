//! Where a request would go: routes, and the conditions under which a request takes one.

pub mod condition;
pub mod host;
pub mod method;
pub mod path_regex;
pub mod pattern;
pub mod readings;
pub mod table;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Prefix;
use crate::key::KeyPart;
use crate::limit::DenyResponse;
use crate::limit::LimitId;
use crate::list::ListId;
use crate::outcome::OutcomeRule;

pub use self::condition::Condition;
pub use self::condition::InvalidMatch;
pub use self::host::HostPattern;
pub use self::host::InvalidHostPattern;
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

/// The position of an upstream in the configuration.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UpstreamId(pub u16);

/// The position of a route in the table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RouteId(pub u16);

/// `known_clients`: after a success the client is known for that subject.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownClients {
    /// What a client is known for: a user name.
    pub of: KeyPart,
    /// So many of them for each subject, the latest.
    pub remember: NonZeroU32,
    /// For so long after the last success.
    pub keep: Duration,
    pub by: KnownBy,
    /// Addresses are cut to this before they are compared.
    pub prefix: Prefix,
}

/// What a known client is recognised by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KnownBy {
    #[default]
    Address,
    /// A signed device cookie.
    Cookie,
}

/// One entry of `routes`.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its `name`, or the text of its `match` where it has none.
    pub name: Arc<str>,
    pub condition: Condition,
    pub upstream: UpstreamId,
    /// `only`: anyone outside these lists is refused.
    pub only: Option<Vec<ListId>>,
    pub limits: Vec<LimitId>,
    /// What the application's answers mean here.
    pub outcome: Option<Arc<OutcomeRule>>,
    pub known_clients: Option<KnownClients>,
    pub deny_response: Option<Box<DenyResponse>>,
}
