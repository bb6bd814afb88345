//! Requests in flight.

use serde::Deserialize;
use serde::Serialize;

/// How many requests of one key are on their way.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct InFlight(u32);

impl InFlight {
    pub(super) fn count(self) -> u32 {
        self.0
    }

    pub(super) fn take(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// A slot given back that was never taken (the rule was another kind when it was) changes nothing.
    pub(super) fn release(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}
