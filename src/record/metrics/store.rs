//! The metrics of a store that is reached over the network.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

use super::Histogram;

#[derive(Clone, Debug)]
pub struct StoreMetrics {
    pub(super) errors: Counter,
    pub(super) round_trip: Histogram,
}

impl StoreMetrics {
    /// The store answered a decision within this span.
    pub fn answered(&self, span: Duration) {
        self.round_trip.observe(span);
    }

    /// The store did not answer a decision.
    pub fn failed(&self) {
        self.errors.inc();
    }
}
