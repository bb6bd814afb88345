//! Webhooks: who is told when a limit is reached.
//!
//! Each channel is a [`Desk`] with a queue and a task of its own: a slow one holds up no other, and none a request.

mod desk;
mod pace;
mod post;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Metrics;
use crate::limit::ChannelId;

pub use self::desk::Desk;
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

/// The channels of a configuration, running.
#[derive(Clone, Debug, Default)]
pub struct Desks(Vec<Arc<Desk>>);

impl Desks {
    /// `None`: the configuration has no such channel, which it would have been refused for.
    pub fn get(&self, id: ChannelId) -> Option<&Arc<Desk>> {
        self.0.get(usize::from(id.0))
    }

    /// Those of `settings`; channels that did not change go on with what they know and what waits in them.
    pub(super) fn turn_over(
        &self,
        settings: &Settings,
        metrics: &Metrics,
        tasks: &TaskTracker,
        closing: &CancellationToken,
    ) -> Self {
        let desks = settings.channels.iter().map(|channel| {
            let known = self.0.iter().find(|desk| desk.channel() == channel);
            known.map_or_else(
                || Desk::open(channel.clone(), metrics.notices(&channel.name), tasks, closing.clone()),
                Arc::clone,
            )
        });
        Self(desks.collect())
    }
}
