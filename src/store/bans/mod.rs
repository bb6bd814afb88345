//! Bans: a table in this process, looked up without a round trip.
//!
//! - [`ban`]: a ban, its subject and its id.
//! - [`table`]: all bans that this process knows; `index`: finds them.
//! - `codec`: bans as gateways and processes send them to each other.
//! - `sync`: how the table follows the bans in Redis.

pub mod ban;
pub(in crate::store) mod codec;
pub mod index;
pub(in crate::store) mod sync;
pub mod table;

pub use self::ban::{Ban, BanId, BanObserver, BanSubject};
pub use self::table::{BanTableFull, Bans};
