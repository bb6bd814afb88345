//! What a store promises, and what each store promises beside it.
//!
//! `contract` and `model` know no particular store: each store that stands behind the trait brings a [`support::Fixture`]
//! and is held to all of it by `hold_to_contract!`.

#[macro_use]
mod contract;
mod across_slots;
mod away;
mod failover;
mod history;
mod leases;
mod memory;
mod model;
mod node;
mod records;
mod redis;
mod sessions;
mod slots;
mod support;
mod values;

#[path = "../support/mod.rs"]
pub mod surroundings;
