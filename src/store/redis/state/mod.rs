//! What all gateways share in Redis.
//!
//! - [`store`]: the store of one core; [`decided`]: what Redis has decided about a batch, also if the client has left.
//! - [`reserve`]: all or none across hash slots; [`settle`]: settles requests.
//! - [`in_flight`]: slots in flight, their leases, and leased units that were not spent; [`parts`]: the part of this gateway.
//! - [`bans`], [`sessions`], [`resets`], [`keyring`]: bans, sessions, resets and signing keys of all gateways.
//! - [`records`]: what gateways know of each other.

pub(super) mod bans;
pub(super) mod decided;
pub(super) mod in_flight;
pub(super) mod keyring;
pub(super) mod parts;
pub(super) mod records;
mod reserve;
pub(super) mod resets;
pub(super) mod sessions;
pub(super) mod settle;
pub(super) mod store;

#[cfg(test)]
mod tests;
