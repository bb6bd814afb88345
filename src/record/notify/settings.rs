//! The `notify` section of the configuration.

use std::sync::Arc;
use std::time::Duration;

use super::Webhook;

/// Channels in the order of `limit::ChannelId`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NotifySettings {
    pub channels: Vec<ChannelSettings>,
}

/// A webhook, and how often it is notified at most.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChannelSettings {
    pub name: Arc<str>,
    pub webhook: Webhook,
    /// At most one notification in this time for each limit and key.
    pub every: Duration,
}

impl ChannelSettings {
    /// `every` where the configuration leaves it out.
    pub const EVERY: Duration = Duration::from_secs(60);
}
