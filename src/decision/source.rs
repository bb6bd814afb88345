//! Gathers what selectors read from.

use smallvec::SmallVec;

use super::Policy;
use crate::key::Captures;
use crate::key::Identity;
use crate::key::Source;
use crate::request::BodyFields;
use crate::request::RequestHead;
use crate::route::Walk;

/// Calls `then` with everything that selectors read from, for a request that takes the routes of `walk`.
pub(super) fn with_source<T>(
    policy: &Policy,
    head: &RequestHead<'_>,
    fields: &BodyFields,
    walk: &Walk,
    identity: Identity<'_>,
    then: impl FnOnce(&Source<'_>) -> T,
) -> T {
    let mut routes: SmallVec<[&str; 4]> = SmallVec::new();
    let mut captures = Captures::new();
    for route in walk.collected.iter().map(|&route| policy.routes.get(route)) {
        routes.push(&route.name);
        route.condition.capture(head, &mut captures);
    }
    then(&Source { head, fields, routes: &routes, captures: &captures, device: None, identity })
}
