//! A route of the configuration.

use std::sync::Arc;

use super::Condition;
use super::KnownClients;
use super::SessionRule;
use crate::limit::DenyResponse;
use crate::limit::DescriptorFilter;
use crate::limit::LimitId;
use crate::list::ListId;
use crate::outcome::OutcomeRule;

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
    /// Of requests. A route of a domain has none.
    pub condition: Condition,
    /// The domain whose descriptors take this route. No request takes such a route.
    pub domain: Option<Arc<str>>,
    pub upstream: UpstreamId,
    /// `only`: clients outside these lists are denied.
    pub only: Option<Vec<ListId>>,
    pub limits: Vec<LimitId>,
    /// How answers of the application are classified.
    pub outcome: Option<Arc<OutcomeRule>>,
    pub known_clients: Option<KnownClients>,
    /// What a success gives the client is a session of the account.
    pub sessions: Option<SessionRule>,
    pub deny_response: Option<Box<DenyResponse>>,
    /// The descriptors that a domain denies.
    pub denied: Vec<DescriptorFilter>,
}
