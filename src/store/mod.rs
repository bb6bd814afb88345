//! Where counts are kept. Stores decide batches and do not know requests.
//!
//! - [`contract`]: what every store does; [`any_store`]: the stores as one type; [`settings`].
//! - [`memory`]: counts in this process; [`snapshot`]: what survives a restart; [`handover`]: counts move to a process
//!   that takes over.
//! - [`redis`]: counts in Redis; [`failover`]: Redis, and this process during an outage.
//! - [`denied_until`], [`resets`]: what this process knows of denials and resets in Redis.
//! - [`bans`]: who is banned; [`sessions`]: who is signed in.
//! - [`leases`]: units of limits in Redis that this process spends by itself.
//! - [`parts`]: which part of every limit this process may grant while Redis is away.
//! - [`shared_records`]: what the gateways on one Redis know of each other.
//! - [`unsettled`]: reservations that wait for their outcome.
//! - [`key_ring`], [`process_hasher`], `random`: signing keys, hashes and randomness; `slab`: a dense table.

pub mod any_store;
pub mod bans;
pub mod contract;
pub mod denied_until;
pub mod failover;
pub mod handover;
pub mod key_ring;
pub mod leases;
pub mod memory;
pub mod parts;
pub mod process_hasher;
pub mod redis;
pub mod resets;
pub mod sessions;
pub mod settings;
pub mod shared_records;
pub mod snapshot;
pub mod unsettled;

mod random;
mod slab;

pub use self::any_store::AnyStore;
pub use self::bans::Bans;
pub use self::contract::Observer;
pub use self::contract::Store;
pub use self::contract::StoreError;
pub use self::failover::Failover;
pub use self::key_ring::LiveKeyRing;
pub use self::memory::MemoryStore;
pub use self::sessions::Sessions;
pub use self::settings::Settings;
pub use self::shared_records::SharedRecords;
