//! The counters of one webhook.

use prometheus_client::metrics::counter::Counter;

#[derive(Clone, Debug)]
pub(in crate::record) struct NotificationMetrics {
    pub(super) delivered: Counter,
    pub(super) failed: Counter,
    pub(super) dropped: Counter,
    pub(super) suppressed: Counter,
}

impl NotificationMetrics {
    pub(in crate::record) fn delivered(&self) {
        self.delivered.inc();
    }

    /// Every attempt failed.
    pub(in crate::record) fn failed(&self) {
        self.failed.inc();
    }

    /// The queue was full.
    pub(in crate::record) fn dropped(&self) {
        self.dropped.inc();
    }

    /// The same limit and key had a notification lately.
    pub(in crate::record) fn suppressed(&self) {
        self.suppressed.inc();
    }
}
