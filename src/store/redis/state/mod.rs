//! What all gateways share in Redis.
//!
//! - [`store`], [`core`]: the store of one core; [`decided`]: what Redis has decided about a batch.
//! - [`reserve`], [`slot_charges`], [`give_back`]: all or none across hash slots; [`detached`]: decisions that finish even
//!   if the client has left.
//! - [`settle`]: settles requests; [`in_flight`], [`leases`]: slots in flight and their leases.
//! - [`returned_leases`]: gives back leased units that were not spent; [`parts`]: keeps the part of this gateway.
//! - [`bans`], with [`ban_changes`] and [`ban_queue`] that send many at once, [`sessions`], [`resets`], [`keyring`]: bans,
//!   sessions, resets and signing keys of all gateways.
//! - [`append`]: appends entries to a stream; [`records`], [`record_commands`]: what gateways know of each other.

pub(super) mod bans;
pub(super) mod decided;
pub(super) mod keyring;
pub(super) mod parts;
pub(super) mod records;
pub(super) mod resets;
pub(super) mod returned_leases;
pub(super) mod sessions;
pub(super) mod settle;
pub(super) mod store;

mod append;
mod ban_changes;
mod ban_queue;
mod core;
mod detached;
mod give_back;
mod in_flight;
mod join_all;
mod leases;
mod record_commands;
mod reserve;
mod slot_charges;

#[cfg(test)]
mod tests;
