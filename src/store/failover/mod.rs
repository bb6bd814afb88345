//! A store that asks Redis, and decides by itself during an outage.
//!
#![doc = include_str!("states.md")]

mod bans_and_sessions;
mod outage;
mod store;

pub use self::store::Failover;
