//! The running webhook channels of a configuration.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::NotifySettings;
use super::WebhookChannel;
use crate::limit::ChannelId;
use crate::record::Metrics;

#[derive(Clone, Debug, Default)]
pub struct WebhookChannels(Vec<Arc<WebhookChannel>>);

impl WebhookChannels {
    /// `None`: the configuration has no such channel. One that names it is refused when it is read.
    pub fn get(&self, id: ChannelId) -> Option<&Arc<WebhookChannel>> {
        self.0.get(usize::from(id.0))
    }

    /// The channels of `settings`. Those that did not change keep their queues and what they have notified of.
    pub(in crate::record) fn reopen(
        &self,
        settings: &NotifySettings,
        metrics: &Metrics,
        tasks: &TaskTracker,
        closing: &CancellationToken,
    ) -> Self {
        let channels = settings.channels.iter().map(|settings| {
            let kept = self.0.iter().find(|channel| channel.settings() == settings);
            kept.map_or_else(
                || {
                    let counters = metrics.notifications(&settings.name);
                    WebhookChannel::open(settings.clone(), counters, tasks, closing.clone())
                },
                Arc::clone,
            )
        });
        Self(channels.collect())
    }
}
