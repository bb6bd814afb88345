//! Whoever wants to know of what was done to somebody: the audit trail, webhooks, the live stream.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Metrics;
use super::audit::AuditContext;
use super::audit::AuditError;
use super::audit::AuditSettings;
use super::audit::AuditTrail;
use super::audit::StreamAppender;
use super::event::Event;
use super::notify::NotifySettings;
use super::notify::WebhookChannels;
use super::stream::Stream;

/// Lives as long as the process; what it tells changes with the configuration.
#[derive(Debug)]
pub struct EventBus {
    trail: ArcSwap<AuditTrail>,
    /// Whether the trail has any place: asked of every denial.
    is_kept: AtomicBool,
    stream: Stream,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl EventBus {
    pub(super) fn new() -> Self {
        Self {
            trail: ArcSwap::from_pointee(AuditTrail::default()),
            is_kept: AtomicBool::new(false),
            stream: Stream::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Opens the places of the audit trail; [`Self::set_trail`] puts them in force. To be called within a runtime.
    pub fn open_trail(
        &self,
        settings: &AuditSettings,
        redis: Option<&Arc<dyn StreamAppender>>,
        metrics: &Metrics,
    ) -> Result<AuditTrail, AuditError> {
        AuditTrail::open(settings, Some(&self.trail.load()), AuditContext { metrics, redis, tasks: &self.tasks })
    }

    /// From now on entries go there.
    pub fn set_trail(&self, trail: AuditTrail) {
        let is_kept = !trail.is_empty();
        self.trail.store(Arc::new(trail));
        self.is_kept.store(is_kept, Ordering::Release);
    }

    /// Opens the channels for a policy; those that did not change are taken over from `previous`. To be called within a
    /// runtime.
    pub fn open_channels(
        &self,
        settings: &NotifySettings,
        previous: &WebhookChannels,
        metrics: &Metrics,
    ) -> WebhookChannels {
        previous.reopen(settings, metrics, &self.tasks, &self.closing)
    }

    /// Where one can listen.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether anybody at all would be told.
    pub(super) fn has_consumers(&self) -> bool {
        self.stream.has_listeners() || self.is_kept.load(Ordering::Acquire)
    }

    /// Tells everybody but webhooks. Waits for nobody.
    pub fn publish(&self, event: &Arc<Event>) {
        self.trail.load().enter(event);
        self.stream.tell(event);
    }

    /// Ends the stream, and waits until what was told is written and sent, `at_most` so long.
    pub async fn close(&self, at_most: Duration) {
        self.stream.hang_up();
        self.closing.cancel();
        self.is_kept.store(false, Ordering::Release);
        let ends = self.trail.swap(Arc::new(AuditTrail::default())).ends();
        self.tasks.close();
        let all = async {
            for end in ends {
                end.reached().await;
            }
            self.tasks.wait().await;
        };
        drop(timeout(at_most, all).await);
    }
}
