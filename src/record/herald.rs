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
use super::audit;
use super::audit::Append;
use super::audit::AuditError;
use super::audit::Trail;
use super::happening::Happening;
use super::notify;
use super::notify::Desks;
use super::stream::Stream;

/// Lives as long as the process; what it tells changes with the configuration.
#[derive(Debug)]
pub struct Herald {
    trail: ArcSwap<Trail>,
    /// Whether the trail has any place: asked of every denial.
    is_kept: AtomicBool,
    stream: Stream,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Herald {
    pub(super) fn new() -> Self {
        Self {
            trail: ArcSwap::from_pointee(Trail::default()),
            is_kept: AtomicBool::new(false),
            stream: Stream::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Opens the places of the audit trail; [`Self::follow`] puts them in force. To be called within a runtime.
    pub fn open(
        &self,
        settings: &audit::Settings,
        redis: Option<&Arc<dyn Append>>,
        metrics: &Metrics,
    ) -> Result<Trail, AuditError> {
        Trail::open(settings, Some(&self.trail.load()), audit::Means { metrics, redis, tasks: &self.tasks })
    }

    /// From now on entries go there.
    pub fn follow(&self, trail: Trail) {
        let is_kept = !trail.is_empty();
        self.trail.store(Arc::new(trail));
        self.is_kept.store(is_kept, Ordering::Release);
    }

    /// Opens the channels for a policy; those that did not change are taken over from `previous`. To be called within a
    /// runtime.
    pub fn desks(&self, settings: &notify::Settings, previous: &Desks, metrics: &Metrics) -> Desks {
        previous.turn_over(settings, metrics, &self.tasks, &self.closing)
    }

    /// Where one can listen.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether anybody at all would be told.
    pub(super) fn is_heard(&self) -> bool {
        self.stream.has_listeners() || self.is_kept.load(Ordering::Acquire)
    }

    /// Tells everybody but webhooks. Waits for nobody.
    pub fn tell(&self, happening: &Arc<Happening>) {
        self.trail.load().enter(happening);
        self.stream.tell(happening);
    }

    /// Ends the stream, and waits until what was told is written and sent, `at_most` so long.
    pub async fn close(&self, at_most: Duration) {
        self.stream.hang_up();
        self.closing.cancel();
        self.is_kept.store(false, Ordering::Release);
        let ends = self.trail.swap(Arc::new(Trail::default())).ends();
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
