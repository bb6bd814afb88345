//! Several gateways on one real Redis: the application receives what the limits admit, and an outage of Redis shows in
//! the metrics alone.

mod absent;
mod at_rest;
mod ban_addresses;
mod bans;
mod busy;
mod cluster;
mod exact;
mod failures;
mod flood;
mod form;
mod leases;
mod one_client;
mod outage;
mod outcomes;
mod packet;
mod parts;
mod password;
mod policies;
mod questions;
mod replicas;
mod resets;
mod rights;
mod round_trips;
mod sentinel;
mod site;
mod slots;
mod state;
mod status;
mod stories;
mod together;

#[path = "../support/mod.rs"]
pub mod support;
