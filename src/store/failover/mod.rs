//! A store that asks Redis, and decides by itself during an outage.
//!
#![doc = include_str!("states.md")]

mod bans;
mod local_keys;
mod local_slots;
mod outage;
mod outcome;
mod room;
mod sessions;
mod share;
mod skew;
mod store;

pub use self::store::Failover;
