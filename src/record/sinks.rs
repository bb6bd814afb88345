//! Where records go: the request log, the metrics, the event bus and the exporters of spans.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use super::Event;
use super::EventBus;
use super::LineWriter;
use super::LogFormat;
use super::Metrics;
use super::advice::Advisor;
use super::heavy_keys::KeyTables;
use super::kept_requests::KeptRequests;
use super::spans::SpanExporters;

/// Lives as long as the process. Clones share the sinks.
#[derive(Clone, Debug)]
pub struct Sinks {
    pub(super) lines: Arc<LineWriter>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) event_bus: Arc<EventBus>,
    pub(super) kept_requests: Arc<KeptRequests>,
    pub(super) key_tables: Arc<KeyTables>,
    span_exporters: Arc<SpanExporters>,
    pub(super) advisor: Arc<Advisor>,
    /// The format where the configuration names none.
    pub(super) default_format: LogFormat,
}

impl Sinks {
    /// A thread of its own writes the lines of the request log to `out`.
    pub fn new(out: impl Write + Send + 'static, default_format: LogFormat) -> std::io::Result<Self> {
        Ok(Self { lines: LineWriter::start(out)?, default_format, ..Self::discard() })
    }

    /// Counts requests and writes no lines; for tests.
    pub fn discard() -> Self {
        let lines = Arc::new(LineWriter::detached());
        let (metrics, event_bus) = (Arc::new(Metrics::new()), Arc::new(EventBus::new()));
        Self {
            lines,
            metrics,
            event_bus,
            kept_requests: Arc::default(),
            key_tables: Arc::default(),
            span_exporters: Arc::default(),
            advisor: Arc::default(),
            default_format: LogFormat::Json,
        }
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// What looks misconfigured.
    pub fn advisor(&self) -> &Arc<Advisor> {
        &self.advisor
    }

    pub fn event_bus(&self) -> &Arc<EventBus> {
        &self.event_bus
    }

    /// The newest requests that were denied or held.
    pub fn kept_requests(&self) -> &Arc<KeptRequests> {
        &self.kept_requests
    }

    /// Who asks most, by limit and by client.
    pub fn key_tables(&self) -> &Arc<KeyTables> {
        &self.key_tables
    }

    pub fn span_exporters(&self) -> &SpanExporters {
        &self.span_exporters
    }

    /// Publishes an event that no request caused. Does not wait.
    pub fn publish(&self, event: Event) {
        self.event_bus.publish(&Arc::new(event));
    }

    /// Waits until every line is written, but no longer than `at_most`: stdout may be a pipe that is not read, and the
    /// exit must not hang on it.
    pub fn flush(&self, at_most: Duration) {
        self.lines.flush(at_most);
    }

    /// How many lines of the request log were dropped because their reader was too slow.
    pub fn dropped_lines(&self) -> u64 {
        self.lines.dropped()
    }
}
