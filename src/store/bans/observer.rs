//! What is called when this process sets or lifts a ban.

use super::ban::Ban;

/// Is called for bans that this process sets or lifts, for the audit trail and the live stream.
///
/// Called while a request waits, so it must not block. Other gateways report their own bans.
pub trait BanObserver: Send + Sync + std::fmt::Debug {
    /// The ban begins now.
    fn banned(&self, ban: &Ban);

    /// An operator has lifted the ban before its end.
    fn lifted(&self, ban: &Ban);
}
