//! What stories say of a configuration, whatever the configuration is by then.

use std::sync::Arc;

use super::LimitFacts;
use crate::decision::Policy;
use crate::limit::LimitId;
use crate::route::RouteId;

/// Made once for each configuration. It outlives the configuration in the requests that are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyFacts {
    /// By `RouteId`.
    pub routes: Vec<Arc<str>>,
    /// By `LimitId`.
    pub limits: Vec<LimitFacts>,
}

impl PolicyFacts {
    pub fn of(policy: &Policy) -> Self {
        Self {
            routes: policy.routes.all().iter().map(|route| Arc::clone(&route.name)).collect(),
            limits: policy.limits.iter().map(LimitFacts::of).collect(),
        }
    }

    pub fn route(&self, id: RouteId) -> &str {
        &self.routes[usize::from(id.0)]
    }

    pub fn limit(&self, id: LimitId) -> &LimitFacts {
        &self.limits[usize::from(id.0)]
    }
}
