//! The denial of a request that was to be delayed, and cannot be held.

use std::time::Duration;

use smallvec::SmallVec;
use smallvec::smallvec;

use super::Denial;
use super::Pending;
use super::Policy;
use super::conclude::Cause;
use super::conclude::Penalty;
use super::conclude::Report;
use crate::limit::Detail;
use crate::limit::LimitId;
use crate::route::RouteId;

impl<'p> Denial<'p> {
    /// Denied by the limit that would have delayed it for `span`, after which it may come again. What the request has
    /// reserved, and what its limits said, stays with whoever held it.
    pub fn instead_of_delay(policy: &'p Policy, route: Option<RouteId>, limit: LimitId, span: Duration) -> Self {
        let of_route = route.and_then(|route| policy.routes.get(route).deny_response.as_deref());
        let retry_after = (policy.limit(limit).headers != Detail::None).then_some(span);
        Self {
            route,
            cause: Cause::Limited { limits: smallvec![limit], retry_after },
            limit: Some(limit),
            key: None,
            wait: Some(span),
            response: of_route.unwrap_or(&policy.deny_response),
            penalty: Penalty::None,
            trips: SmallVec::new(),
            is_suspect: false,
            slots: SmallVec::new(),
            pending: Pending::default(),
            report: Report::default(),
        }
    }
}
