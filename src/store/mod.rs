//! Where counts are kept. Stores decide batches and do not know requests.
//!
//! - [`any_store`]: what every store does, the stores as one type with their bans and sessions, and the `store` section.
//! - [`memory`]: counts in this process; [`snapshot`]: what survives a restart; [`handover`]: counts move to a process
//!   that takes over.
//! - [`redis`]: counts in Redis; [`failover`]: Redis, and this process during an outage.
//! - [`denied_until`]: denials of Redis that this process repeats; [`key_ring`]: signing keys, and resets of all gateways.
//! - [`bans`]: who is banned; [`sessions`]: who is signed in.
//! - [`leases`]: units of limits in Redis that this process spends by itself.
//! - [`parts`]: which part of every limit this process may grant while Redis is away.
//! - [`shared_records`]: what the gateways on one Redis know of each other.
//! - [`unsettled`]: reservations that wait for their outcome; `slab`: a dense table.

pub mod any_store;
pub mod bans;
pub mod denied_until;
pub mod failover;
pub mod handover;
pub mod key_ring;
pub mod leases;
pub mod memory;
pub mod parts;
pub mod redis;
pub mod sessions;
pub mod shared_records;
pub mod slab;
pub mod snapshot;
pub mod unsettled;

pub use self::any_store::{AnyStore, Observer, Store, StoreError, StoreSettings};
pub use self::bans::Bans;
pub use self::failover::Failover;
pub use self::handover::MovableStore;
pub use self::key_ring::LiveKeyRing;
pub use self::memory::MemoryStore;
pub use self::sessions::Sessions;
pub use self::shared_records::SharedRecords;
