//! The metrics of a store that is reached over the network.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

use super::Histogram;

#[derive(Clone, Debug)]
pub struct StoreMetrics {
    pub(super) errors: Counter,
    pub(super) down: Counter,
    pub(super) overload: Counter,
    pub(super) leased: Counter,
    pub(super) round_trip: Histogram,
}

impl StoreMetrics {
    /// The store answered a decision within this span.
    pub fn answered(&self, span: Duration) {
        self.round_trip.observe(span);
    }

    /// A decision needed no call: what this gateway has leased paid for it.
    pub fn leased(&self) {
        self.leased.inc();
    }

    /// The store did not answer a decision.
    pub fn failed(&self) {
        self.errors.inc();
    }

    /// A server of the store was up until now, and is down.
    pub fn went_down(&self) {
        self.down.inc();
    }

    /// A request was refused because this gateway is too busy to ask the store.
    pub fn overloaded(&self) {
        self.overload.inc();
    }
}
