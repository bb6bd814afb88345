//! Concurrency slots.

use serde::Deserialize;
use serde::Serialize;

/// How many requests of one key hold a slot.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SlotCount(u32);

impl SlotCount {
    pub(super) fn count(self) -> u32 {
        self.0
    }

    pub(super) fn take(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// Ignores a slot that was never taken, because the rule was of another kind then.
    pub(super) fn release(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}
