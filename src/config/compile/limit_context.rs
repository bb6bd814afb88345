//! The place of a limit in the configuration.

use super::availability::Availability;
use super::channels::Channels;
use super::lists::Lists;

/// The place of a limit, and what it may refer to there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitContext<'s> {
    /// The first part of the name of limits without one, before their number.
    pub owner: &'s str,
    pub captures: Captures<'s>,
    pub availability: Availability,
    pub lists: &'s Lists,
    pub channels: &'s Channels,
}

impl LimitContext<'_> {
    /// Whether the limit is on a route of a domain, and counts descriptors.
    pub(super) fn is_of_domain(self) -> bool {
        matches!(self.captures, Captures::Domain)
    }
}

/// Which names a limit's route captures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Captures<'c> {
    /// The limit is on no route.
    Nowhere,
    Named(&'c [String]),
    /// The route is for descriptors, which have no path.
    Domain,
    /// The route's match has a mistake of its own.
    Unknown,
}
