//! Where a request would go: routes, and the conditions under which a request takes one.

pub mod condition;
pub mod pattern;

use std::sync::Arc;

use crate::limit::DenyResponse;
use crate::limit::LimitId;
use crate::list::ListId;

pub use self::condition::Condition;

/// The position of an upstream in the configuration.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UpstreamId(pub u16);

/// The position of a route in the table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RouteId(pub u16);

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
    pub deny_response: Option<Box<DenyResponse>>,
}

/// Routes in the order they are tried.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    pub routes: Vec<Route>,
}
