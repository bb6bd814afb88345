//! Who is banned: a table of this process that is asked without a round trip.
//!
//! - [`ban`]: what a ban is, and what it is called.
//! - [`table`]: all bans that are known here, and how long each still lasts.
//! - [`networks`]: the banned addresses among them.
//! - [`shared`], [`followed`]: what gateways tell each other of them, and what of it is known.
//! - [`begin`]: bans that begin and end, in memory or by way of Redis.

pub mod ban;
pub mod networks;
pub mod table;

mod begin;
mod followed;

pub(in crate::store) mod shared;

pub use self::ban::Ban;
pub use self::ban::BanId;
pub use self::ban::BanSubject;
pub use self::table::BanTableFull;
pub use self::table::Bans;

/// Who is told of bans that begin and end by the doing of this process: for the audit trail and the live stream.
///
/// Called on the way of a request, and not to wait for anything. What other gateways do is told by them.
pub trait BanObserver: Send + Sync + std::fmt::Debug {
    /// It begins now.
    fn banned(&self, ban: &Ban);

    /// It was lifted by hand before its end.
    fn lifted(&self, ban: &Ban);
}
