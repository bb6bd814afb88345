//! Denials that no verdict led to.

use std::time::Duration;

use smallvec::SmallVec;
use smallvec::smallvec;

use super::Denial;
use super::Policy;
use super::concluded::Cause;
use super::concluded::Penalty;
use super::concluded::Report;
use crate::limit::DenyResponse;
use crate::limit::Detail;
use crate::limit::LimitId;
use crate::route::RouteId;

impl<'p> Denial<'p> {
    /// Denied by the limit that would have delayed it for `span`, after which it may come again. What the request has
    /// reserved, and what its limits said, stays with whoever held it.
    pub fn instead_of_delay(policy: &'p Policy, route: Option<RouteId>, limit: LimitId, span: Duration) -> Self {
        let of_route = route.and_then(|route| policy.routes.get(route).deny_response.as_deref());
        let retry_after = (policy.limit(limit).headers != Detail::None).then_some(span);
        let cause = Cause::Limited { limits: smallvec![limit], retry_after };
        let response = of_route.unwrap_or(&policy.deny_response);
        Self { limit: Some(limit), wait: Some(span), ..Self::bare(route, cause, response) }
    }

    /// Denied for this, and nothing more to say or to do.
    pub(super) fn bare(route: Option<RouteId>, cause: Cause, response: &'p DenyResponse) -> Self {
        Self {
            route,
            cause,
            limit: None,
            key: None,
            wait: None,
            response,
            penalty: Penalty::None,
            trips: SmallVec::new(),
            is_suspect: false,
            slots: SmallVec::new(),
            pending: None,
            report: Report::default(),
        }
    }
}
