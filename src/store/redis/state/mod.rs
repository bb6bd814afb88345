//! What all gateways share in Redis.
//!
//! - [`store`], [`core`]: what others see of it, and what one core needs for it; [`decided`]: what came of a batch.
//! - [`reserve`]: all or none across slots; [`detached`]: finished though the client has left.
//! - [`settle`]: what became of requests; [`in_flight`], [`leases`]: slots in flight, and how they are held.
//! - [`bans`], [`resets`], [`keyring`]: what gateways tell one another.
//! - [`append`]: entries of a stream.

pub(super) mod bans;
pub(super) mod decided;
pub(super) mod keyring;
pub(super) mod resets;
pub(super) mod settle;
pub(super) mod store;

mod append;
mod core;
mod detached;
mod in_flight;
mod join_all;
mod leases;
mod reserve;
