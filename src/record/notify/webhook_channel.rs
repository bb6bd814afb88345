//! A running channel: suppresses repeated notifications, queues the others, and sends them from a task of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::info;
use tracing::warn;

use super::ChannelSettings;
use super::notification::Notification;
use super::post::post;
use super::suppression::SendVerdict;
use super::suppression::Suppression;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::record::Event;
use crate::record::metrics::NotificationMetrics;

/// The sending end of the queue. When the last holder drops it, the task sends what is queued and ends.
#[derive(Debug)]
pub struct WebhookChannel {
    settings: ChannelSettings,
    suppression: Mutex<Suppression>,
    queue: mpsc::Sender<Notification>,
    counters: NotificationMetrics,
}

/// More notifications than this would arrive too late to help.
const MAX_QUEUED: usize = 1024;

/// How often a notification is sent at most.
const MAX_ATTEMPTS: u32 = 7;

/// The wait before the second attempt. Each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

impl WebhookChannel {
    /// To be called within a runtime. When `closing` is cancelled, the task tries what is queued once more and ends.
    pub(super) fn open(
        settings: ChannelSettings,
        counters: NotificationMetrics,
        tasks: &TaskTracker,
        closing: CancellationToken,
    ) -> Arc<Self> {
        let (queue, notifications) = mpsc::channel(MAX_QUEUED);
        tasks.spawn(send_queued(settings.clone(), notifications, counters.clone(), closing));
        let suppression = Mutex::new(Suppression::new(settings.every));
        Arc::new(Self { settings, suppression, queue, counters })
    }

    pub fn settings(&self) -> &ChannelSettings {
        &self.settings
    }

    /// Queues a notification, unless the same limit and key had one lately. Does not wait.
    pub(in crate::record) fn notify(&self, event: &Arc<Event>, limit: &Arc<str>, key: KeyHash, now: Timestamp) {
        let verdict = self.suppression.lock().check(limit, key, now);
        match verdict {
            SendVerdict::Send { suppressed } => {
                let notification = Notification { event: Arc::clone(event), suppressed };
                if self.queue.try_send(notification).is_err() {
                    self.counters.dropped();
                }
            }
            SendVerdict::Suppress => self.counters.suppressed(),
            SendVerdict::Full => self.counters.dropped(),
        }
    }
}

async fn send_queued(
    settings: ChannelSettings,
    mut notifications: mpsc::Receiver<Notification>,
    counters: NotificationMetrics,
    closing: CancellationToken,
) {
    let mut is_healthy = true;
    loop {
        let notification = tokio::select! {
            biased;
            notification = notifications.recv() => notification,
            () = closing.cancelled(), if !notifications.is_closed() => {
                notifications.close();
                continue;
            }
        };
        let Some(notification) = notification else { return };
        let is_delivered = send_with_retries(&settings, &notification, &closing).await;
        if is_delivered {
            counters.delivered();
        } else {
            counters.failed();
        }
        let name = &*settings.name;
        match (is_healthy, is_delivered) {
            (false, true) => info!(channel = name, "the webhook of `{name}` takes notifications again"),
            (true, false) => {
                warn!(channel = name, "the webhook of `{name}` takes no notifications: this one is given up");
            }
            _ => {}
        }
        is_healthy = is_delivered;
    }
}

/// Retries for about half a minute, besides the time of the attempts themselves. Returns whether it was delivered.
async fn send_with_retries(
    settings: &ChannelSettings,
    notification: &Notification,
    closing: &CancellationToken,
) -> bool {
    let json = Bytes::from(notification.to_json().to_string());
    let mut wait = FIRST_WAIT;
    for attempt in 1..=MAX_ATTEMPTS {
        match post(&settings.webhook, json.clone()).await {
            Ok(()) => return true,
            Err(error) => {
                let name = &*settings.name;
                info!(channel = name, attempt, "the webhook of `{name}` did not take a notification: {error}");
            }
        }
        if attempt == MAX_ATTEMPTS || closing.is_cancelled() {
            break;
        }
        tokio::select! {
            () = time::sleep(wait) => {}
            // The gateway stops: one more attempt at once, the last.
            () = closing.cancelled() => {}
        }
        wait *= 2;
    }
    false
}
