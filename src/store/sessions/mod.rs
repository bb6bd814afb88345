//! Sessions: whose each is, looked up without a round trip.
//!
//! - [`table`]: all sessions that this process knows; `shard` is a part of it, and `tenths` how it writes moments.
//! - `known`: a session, in full; `version`, `record`, `message`: sessions as gateways send them to each other.
//! - `saved`: sessions as one process saves them for another.
//! - `changed`: which sessions have changed since they were last written to disk.
//! - `sync`, `sync_state`: how the table follows the sessions in Redis.

pub(in crate::store) mod codec;
mod shard;
pub(in crate::store) mod sync;
pub mod table;

pub use self::table::Sessions;
