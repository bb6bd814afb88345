//! Under which name requests are counted.

use std::sync::Arc;

use crate::record::NO_ROUTE;
use crate::record::NO_ROUTE_LABEL;
use crate::record::OTHER_ROUTES_LABEL;

/// What is counted together.
#[derive(Clone, Debug)]
pub(in crate::record) enum CountedRoute {
    Named(Arc<str>),
    /// Requests on no route.
    NoRoute,
    /// The routes without series of their own, beside what is counted for each of them.
    Others,
}

impl CountedRoute {
    /// The value of the label `route`.
    pub(in crate::record) fn label(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::NoRoute => NO_ROUTE_LABEL,
            Self::Others => OTHER_ROUTES_LABEL,
        }
    }

    /// The name in the history and in events; `None`: what is counted here is there under other names.
    pub(in crate::record) fn name(&self) -> Option<Arc<str>> {
        match self {
            Self::Named(name) => Some(Arc::clone(name)),
            Self::NoRoute => Some(Arc::from(NO_ROUTE)),
            Self::Others => None,
        }
    }
}
