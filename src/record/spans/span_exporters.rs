//! The tasks that send spans.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Tracer;
use super::TracingSettings;
use crate::record::Metrics;

/// Lives as long as the process. A reload may replace the tracer.
#[derive(Debug, Default)]
pub struct SpanExporters {
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl SpanExporters {
    /// The tracer of a configuration: `previous`, where the settings did not change. To be called within a runtime.
    pub fn open(
        &self,
        settings: Option<&TracingSettings>,
        previous: Option<&Arc<Tracer>>,
        metrics: &Metrics,
    ) -> Option<Arc<Tracer>> {
        let settings = settings?;
        let kept = previous.filter(|previous| previous.settings() == settings);
        Some(kept.map_or_else(
            || Tracer::open(settings.clone(), metrics.spans(), &self.tasks, self.closing.clone()),
            Arc::clone,
        ))
    }

    /// Waits until all queued spans are sent, but no longer than `at_most`.
    pub async fn close(&self, at_most: Duration) {
        self.closing.cancel();
        self.tasks.close();
        drop(timeout(at_most, self.tasks.wait()).await);
    }
}
