//! What stories say of a configuration, whatever the configuration is by then.

use std::sync::Arc;

use super::LimitFacts;
use crate::decision::Policy;
use crate::limit::LimitId;
use crate::route::Route;
use crate::route::RouteId;

/// Made once for each configuration. It outlives the configuration in the requests that are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyFacts {
    /// By `RouteId`.
    pub routes: Vec<RouteFacts>,
    /// By `LimitId`.
    pub limits: Vec<LimitFacts>,
}

/// What a story says of a route.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteFacts {
    pub name: Arc<str>,
    /// The names of the lists whose members alone it lets in. Empty: it lets everyone in.
    pub only: Vec<Arc<str>>,
}

impl PolicyFacts {
    pub fn of(policy: &Policy) -> Self {
        let route = |route: &Route| RouteFacts {
            name: Arc::clone(&route.name),
            only: route.only.iter().flatten().map(|&list| Arc::clone(&policy.list(list).list.name)).collect(),
        };
        Self {
            routes: policy.routes.all().iter().map(route).collect(),
            limits: policy.limits.iter().map(LimitFacts::of).collect(),
        }
    }

    pub fn route(&self, id: RouteId) -> &RouteFacts {
        &self.routes[usize::from(id.0)]
    }

    pub fn limit(&self, id: LimitId) -> &LimitFacts {
        &self.limits[usize::from(id.0)]
    }
}
