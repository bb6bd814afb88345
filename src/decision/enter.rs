//! The first step: what the head of a request alone decides.

use super::Policy;
use crate::request::Head;
use crate::route::RouteId;

/// A request whose lists and routes are known.
#[derive(Debug)]
pub struct Entry<'a> {
    policy: &'a Policy,
    head: &'a Head<'a>,
}

/// Looks a request up in the lists and the route table.
pub fn enter<'a>(policy: &'a Policy, head: &'a Head<'a>) -> Entry<'a> {
    Entry { policy, head }
}

impl Entry<'_> {
    /// Whether a rule asks for something that may stand in the body.
    pub fn needs_body(&self) -> bool {
        todo!()
    }

    /// The route the request goes by; `None`: the default upstream.
    pub fn route(&self) -> Option<RouteId> {
        todo!()
    }
}
