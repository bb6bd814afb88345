//! Webhooks: who is told when a limit is reached.

mod webhook;

use std::sync::Arc;
use std::time::Duration;

pub use self::webhook::InvalidWebhook;
pub use self::webhook::Webhook;

/// The `notify` section, in the order in which `limit::ChannelId` counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Settings {
    pub channels: Vec<Channel>,
}

/// Who is told, and how often at most.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Channel {
    pub name: Arc<str>,
    pub webhook: Webhook,
    /// At most one message in so long for each limit and key.
    pub every: Duration,
}

impl Channel {
    /// `every` where the configuration leaves it out.
    pub const EVERY: Duration = Duration::from_secs(60);
}
