//! Several gateways on one real Redis: what the application receives is what the limits admit, and nobody notices when
//! Redis dies except in the metrics.

mod absent;
mod bans;
mod cluster;
mod exact;
mod failures;
mod flood;
mod form;
mod outage;
mod outcomes;
mod packet;
mod policies;
mod resets;
mod rights;
mod round_trips;
mod sentinel;
mod site;
mod slots;
mod state;

#[path = "../support/mod.rs"]
pub mod support;
