//! Hands events to the audit trail and the event stream, and opens the webhook channels.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Event;
use super::Metrics;
use super::audit::AuditContext;
use super::audit::AuditError;
use super::audit::AuditSettings;
use super::audit::AuditTrail;
use super::audit::StreamAppender;
use super::event_stream::EventStream;
use super::notify::NotifySettings;
use super::notify::WebhookChannels;
use super::past_events::PastEvents;
use crate::clock::Clock;

/// Lives as long as the process. A reload replaces the audit trail and the webhook channels.
#[derive(Debug)]
pub struct EventBus {
    trail: ArcSwap<AuditTrail>,
    /// Whether the trail has any sink. Every denial reads this.
    has_trail: AtomicBool,
    stream: EventStream,
    past: PastEvents,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl EventBus {
    pub(super) fn new() -> Self {
        Self {
            trail: ArcSwap::from_pointee(AuditTrail::default()),
            has_trail: AtomicBool::new(false),
            stream: EventStream::new(Clock::system()),
            past: PastEvents::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Opens the sinks of the audit trail. [`Self::set_trail`] puts them in force. To be called within a runtime.
    pub fn open_trail(
        &self,
        settings: &AuditSettings,
        redis: Option<&Arc<dyn StreamAppender>>,
        metrics: &Metrics,
    ) -> Result<AuditTrail, AuditError> {
        AuditTrail::open(
            settings,
            Some(&self.trail.load()),
            AuditContext { metrics, redis, tasks: &self.tasks, closing: &self.closing },
        )
    }

    pub fn set_trail(&self, trail: AuditTrail) {
        let has_trail = !trail.is_empty();
        self.trail.store(Arc::new(trail));
        self.has_trail.store(has_trail, Ordering::Release);
    }

    /// Opens the webhook channels of a configuration. Those that did not change are taken from `previous`. To be called
    /// within a runtime.
    pub fn open_channels(
        &self,
        settings: &NotifySettings,
        previous: &WebhookChannels,
        metrics: &Metrics,
    ) -> WebhookChannels {
        previous.reopen(settings, metrics, &self.tasks, &self.closing)
    }

    pub fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// The newest bans and reloads.
    pub fn past(&self) -> &PastEvents {
        &self.past
    }

    /// Whether an event may reach the audit trail or a subscriber of the stream.
    pub(super) fn has_consumers(&self) -> bool {
        self.stream.has_subscribers() || self.has_trail()
    }

    /// Whether an event reaches the audit trail.
    pub(super) fn has_trail(&self) -> bool {
        self.has_trail.load(Ordering::Acquire)
    }

    /// Hands an event to the audit trail and the stream. The recorder notifies the webhooks. Does not wait.
    pub fn publish(&self, event: &Arc<Event>) {
        self.trail.load().append(event);
        self.stream.publish(event);
        self.past.keep(event);
    }

    /// The same for the event of a request, of which the stream takes a bounded number in a second: `is_streamed` says
    /// whether it takes this one.
    pub(super) fn publish_request(&self, event: &Arc<Event>, is_streamed: bool) {
        self.trail.load().append(event);
        if is_streamed {
            self.stream.publish(event);
        }
    }

    /// Keeps an event that another gateway publishes, for those who ask later. Of its lifts the audit trail has to know.
    pub fn hear(&self, event: &Arc<Event>) {
        self.trail.load().hear(event);
        self.past.keep(event);
    }

    /// Ends the stream, and waits until all published events are written and sent, but no longer than `at_most`.
    pub async fn close(&self, at_most: Duration) {
        self.stream.close_subscriptions();
        self.closing.cancel();
        self.has_trail.store(false, Ordering::Release);
        let writers = self.trail.swap(Arc::new(AuditTrail::default())).finished();
        self.tasks.close();
        let all = async {
            for writer in writers {
                writer.wait().await;
            }
            self.tasks.wait().await;
        };
        drop(timeout(at_most, all).await);
    }
}
