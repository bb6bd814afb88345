//! Bans: a table in this process, looked up without a round trip.
//!
//! - [`ban`]: a ban, its subject and its id.
//! - [`table`]: all bans that this process knows; `index` and [`networks`] are how it finds them.
//! - `any_store`: bans that begin and end, in memory or through Redis.
//! - `version`, `text`, `blob`, `sealed`, [`message`], `saved`: bans as gateways and processes send them to each other.
//! - `sync`, `sync_state`: how the table follows the bans in Redis.
//! - `observer`: is called when this process sets or lifts a ban.

pub mod ban;
pub mod networks;
pub mod table;

mod any_store;
mod blob;
pub(in crate::store) mod index;
mod observer;
mod sealed;
mod sync;
mod sync_state;

pub(in crate::store) mod message;
pub(in crate::store) mod saved;
pub(in crate::store) mod text;
pub(in crate::store) mod version;

pub use self::ban::Ban;
pub use self::ban::BanId;
pub use self::ban::BanSubject;
pub use self::observer::BanObserver;
pub use self::table::BanTableFull;
pub use self::table::Bans;
