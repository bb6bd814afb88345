//! Decides which requests are traced, and queues their spans.

use std::sync::Arc;

use opentelemetry_sdk::trace::SpanData;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::CollectorUrl;
use super::RequestTrace;
use super::SampleRatio;
use super::SpanNames;
use super::export::export_queued;
use super::request_spans;
use super::request_spans::End;
use crate::clock;
use crate::clock::Timestamp;
use crate::head::Fields;
use crate::record::RequestRecord;
use crate::record::metrics::SpanMetrics;
use crate::record::trace::TraceParent;

/// The `tracing` section of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct TracingSettings {
    pub collector: CollectorUrl,
    /// The share of the requests that is traced where the client does not say.
    pub sample: SampleRatio,
}

/// The sending end of the queue. When the last holder drops it, the task sends what is queued and ends.
#[derive(Debug)]
pub struct Tracer {
    settings: TracingSettings,
    queue: mpsc::Sender<Vec<SpanData>>,
    counters: SpanMetrics,
}

/// So many requests may wait to be sent. Their spans take a few KiB each.
const MAX_QUEUED: usize = 2048;

impl Tracer {
    /// To be called within a runtime. When `closing` is cancelled, the task sends what is queued and ends.
    pub(super) fn open(
        settings: TracingSettings,
        counters: SpanMetrics,
        tasks: &TaskTracker,
        closing: CancellationToken,
    ) -> Arc<Self> {
        let (queue, ended) = mpsc::channel(MAX_QUEUED);
        tasks.spawn(export_queued(settings.collector.clone(), ended, counters.clone(), closing));
        Arc::new(Self { settings, queue, counters })
    }

    pub fn settings(&self) -> &TracingSettings {
        &self.settings
    }

    /// `None`: the request is not traced. Where its `traceparent` says whether it is sampled, that holds.
    pub fn begin(&self, fields: &Fields) -> Option<Box<RequestTrace>> {
        let parent = TraceParent::of(fields);
        let is_sampled = match &parent {
            Some(parent) => parent.is_sampled,
            None => self.settings.sample.takes(fastrand::f64()),
        };
        is_sampled.then(|| Box::new(RequestTrace::begin(parent.map(|parent| parent.ids()))))
    }

    /// Queues the spans of a request that ended at `at`. Does not wait.
    pub(in crate::record) fn end(
        &self,
        trace: &RequestTrace,
        request: &RequestRecord<'_>,
        names: SpanNames<'_>,
        at: Timestamp,
    ) {
        let spans = request_spans::spans(trace, request, names, End { at, wall: clock::wall() });
        let count = spans.len();
        if self.queue.try_send(spans).is_err() {
            self.counters.dropped(count);
        }
    }
}
