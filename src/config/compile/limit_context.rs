//! Where a limit stands in a configuration.

use super::availability::Availability;
use super::channels::Channels;
use super::lists::Lists;

/// Where a limit stands, and what may be referred to there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitContext<'s> {
    /// How limits without a name are called, before their number.
    pub owner: &'s str,
    pub captures: Captures<'s>,
    pub availability: Availability,
    pub lists: &'s Lists,
    pub channels: &'s Channels,
}

/// Which names a limit's route captures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Captures<'c> {
    /// The limit stands on no route.
    Nowhere,
    Named(&'c [String]),
    /// The route's match has a mistake of its own.
    Unknown,
}
