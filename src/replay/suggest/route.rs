//! A group of requests that becomes a route.

use std::cmp::Reverse;

use super::login::is_named_like_a_login;
use super::path_group::PathGroup;

/// A method and a group of paths.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct RouteShape {
    /// GET stands for HEAD too.
    pub(super) method: Box<str>,
    pub(super) path: PathGroup,
    /// In the sample.
    pub(super) requests: u64,
}

impl RouteShape {
    pub(super) fn is_named_like_a_login(&self) -> bool {
        &*self.method == "POST" && is_named_like_a_login(&self.path.to_string())
    }
}

/// The methods that rules do not tell apart have one name.
pub(super) fn method_group(method: &str) -> &str {
    if method == "HEAD" { "GET" } else { method }
}

/// The groups that deserve a route of their own: the most frequent ones, and those that are named like a login. Those
/// that match least come first, because the first match wins; of those that match as much, the most frequent, because
/// one path may be a spelling of another one.
pub(super) fn choose(mut groups: Vec<RouteShape>) -> Vec<RouteShape> {
    let total: u64 = groups.iter().map(|group| group.requests).sum();
    let least = (total / SHARE).max(FEWEST);
    groups.sort_by_key(|group| (Reverse(group.requests), group.path.to_string()));
    let (logins, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(RouteShape::is_named_like_a_login);
    let others = others.into_iter().filter(|group| group.requests >= least).take(MOST_ROUTES);
    let mut chosen: Vec<_> = logins.into_iter().take(MOST_LOGINS).chain(others).collect();
    chosen.sort_by_key(|group| {
        (group.path.width(), Reverse(group.requests), group.path.to_string(), group.method.clone())
    });
    chosen
}

/// One request in so many makes a path worth a route.
const SHARE: u64 = 200;

const FEWEST: u64 = 20;

const MOST_ROUTES: usize = 12;

const MOST_LOGINS: usize = 8;
