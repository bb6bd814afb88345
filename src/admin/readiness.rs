//! Whether the gateway is ready for requests.

use super::AdminState;
use crate::limit::OnFailure;

/// What `/readyz` answers, and the health service of gRPC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Readiness {
    Ready,
    Draining,
    /// A server of the store does not answer, and limits that do not say otherwise deny meanwhile.
    StoreAway,
}

impl AdminState {
    pub fn readiness(&self) -> Readiness {
        match () {
            () if self.is_draining() => Readiness::Draining,
            () if self.rules.load().on_failure == OnFailure::Deny && !self.gauges().store_up => Readiness::StoreAway,
            () => Readiness::Ready,
        }
    }
}
