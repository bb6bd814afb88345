//! What a store promises, and what each store promises beside it.
//!
//! `contract` and `model` know no particular store: each store that stands behind the trait brings a [`support::Fixture`]
//! and is held to all of it by `hold_to_contract!`.

#[macro_use]
mod contract;
mod away;
mod failover;
mod memory;
mod model;
mod redis;
mod support;
mod values;

#[path = "../support/mod.rs"]
pub mod surroundings;
