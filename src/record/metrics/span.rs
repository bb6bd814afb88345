//! The counters of spans.

use prometheus_client::metrics::counter::Counter;

#[derive(Clone, Debug)]
pub(in crate::record) struct SpanMetrics {
    pub(super) exported: Counter,
    pub(super) failed: Counter,
    pub(super) dropped: Counter,
}

impl SpanMetrics {
    pub(in crate::record) fn exported(&self, spans: usize) {
        self.exported.inc_by(count(spans));
    }

    /// The collector did not take them.
    pub(in crate::record) fn failed(&self, spans: usize) {
        self.failed.inc_by(count(spans));
    }

    /// The queue was full.
    pub(in crate::record) fn dropped(&self, spans: usize) {
        self.dropped.inc_by(count(spans));
    }
}

fn count(spans: usize) -> u64 {
    u64::try_from(spans).unwrap_or(u64::MAX)
}
