//! Several gateways on one real Redis: what the application receives is what the limits admit, and nobody notices when
//! Redis dies except in the metrics.

mod absent;
mod cluster;
mod exact;
mod failures;
mod flood;
mod outage;
mod policies;
mod resets;
mod rights;
mod sentinel;
mod site;
mod slots;
mod state;

#[path = "../support/mod.rs"]
pub mod support;
