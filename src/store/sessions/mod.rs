//! Sessions: whose each is, looked up without a round trip.
//!
//! - [`table`]: all sessions that this process knows; `shard` is a part of it, and `tenths` how it writes moments.
//! - `any_store`: what is learned of sessions, in memory or through Redis.

pub mod table;

mod any_store;
mod shard;
mod tenths;

pub use self::table::Sessions;
