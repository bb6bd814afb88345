//! What is called when a ban is set or lifted.

use super::ban::Ban;

/// Is called for bans that are set or lifted, for the audit trail, the live stream and those who ask later.
///
/// Called while a request waits, so it must not block.
pub trait BanObserver: Send + Sync + std::fmt::Debug {
    /// The ban begins now.
    fn banned(&self, ban: &Ban);

    /// An operator has lifted the ban before its end.
    fn lifted(&self, ban: &Ban);

    /// A message in Redis says that the ban began. Another gateway has set it, or this process and its caller does not know
    /// yet.
    fn heard_ban(&self, ban: &Ban);

    /// A message in Redis says that the ban was lifted, by another gateway or by this process.
    fn heard_lift(&self, ban: &Ban);
}
