//! Webhooks: who is told when a limit is reached.
//!
//! Each channel is a [`WebhookChannel`] with a queue and a task of its own: a slow one holds up no other, and none a request.

mod pace;
mod post;
mod webhook;
mod webhook_channel;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Metrics;
use crate::limit::ChannelId;

pub use self::webhook::InvalidWebhook;
pub use self::webhook::Webhook;
pub use self::webhook_channel::WebhookChannel;

/// The `notify` section, in the order in which `limit::ChannelId` counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NotifySettings {
    pub channels: Vec<ChannelSettings>,
}

/// Who is told, and how often at most.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChannelSettings {
    pub name: Arc<str>,
    pub webhook: Webhook,
    /// At most one message in so long for each limit and key.
    pub every: Duration,
}

impl ChannelSettings {
    /// `every` where the configuration leaves it out.
    pub const EVERY: Duration = Duration::from_secs(60);
}

/// The channels of a configuration, running.
#[derive(Clone, Debug, Default)]
pub struct WebhookChannels(Vec<Arc<WebhookChannel>>);

impl WebhookChannels {
    /// `None`: the configuration has no such channel, which it would have been refused for.
    pub fn get(&self, id: ChannelId) -> Option<&Arc<WebhookChannel>> {
        self.0.get(usize::from(id.0))
    }

    /// Those of `settings`; channels that did not change go on with what they know and what waits in them.
    pub(super) fn reopen(
        &self,
        settings: &NotifySettings,
        metrics: &Metrics,
        tasks: &TaskTracker,
        closing: &CancellationToken,
    ) -> Self {
        let channels = settings.channels.iter().map(|settings| {
            let known = self.0.iter().find(|channel| channel.settings() == settings);
            known.map_or_else(
                || WebhookChannel::open(settings.clone(), metrics.notices(&settings.name), tasks, closing.clone()),
                Arc::clone,
            )
        });
        Self(channels.collect())
    }
}
