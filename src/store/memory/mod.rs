//! Counts in the memory of this process: sharded, bounded, and never evicting a key that is being refused.
//!
//! - [`store`], [`settings`]: the store and its settings.
//! - `decide`, `evaluation`, `settle`: how a batch is decided and settled.
//! - `shard`, `seconds`: where keys are kept; `eviction`, `eviction_rank`: which key goes when there is no room.
//! - `known_clients`: which clients are known.
//! - `bans`: bans that begin and end here; `sessions`: what is learned of sessions here.
//! - `successor`, `transfer`: a process that takes over gets the counts and is asked from then on.
//! - `local_copy`: what a shared store asks of this one.
//! - `snapshot_data`: what survives a restart.

pub mod settings;
pub mod store;

mod bans;
mod decide;
mod evaluation;
mod eviction;
mod eviction_rank;
mod known_clients;
mod local_copy;
mod seconds;
mod sessions;
mod settle;
mod shard;
mod snapshot_data;
mod successor;
mod transfer;

pub use self::settings::Settings;
pub(in crate::store) use self::snapshot_data::ChangeMark;
pub use self::store::MemoryStore;

#[cfg(test)]
mod tests;
