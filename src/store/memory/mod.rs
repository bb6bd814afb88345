//! Counts in the memory of this process: sharded, bounded, and never evicting a key that is being refused.
//!
//! - [`store`]: the store, its settings, and what a shared store asks of it.
//! - `decide`: how a batch is decided and settled.
//! - `shard`: where keys are kept; `eviction`: which key goes when there is no room.
//! - `known_clients`: which clients are known.
//! - `bans_and_sessions`: bans that begin and end here, and what is learned of sessions here.
//! - `transfer`: what leaves for a process that takes over, and what survives a restart.

mod bans_and_sessions;
mod decide;
mod eviction;
mod known_clients;
mod shard;
pub mod store;
mod transfer;

pub(in crate::store) use self::store::CountsMoved;
pub use self::store::{MemorySettings, MemoryStore};
pub(in crate::store) use self::transfer::ChangeMark;

#[cfg(test)]
mod tests;
