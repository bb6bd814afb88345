//! Moments in whole seconds, in four bytes.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;

/// A moment in whole seconds since the epoch, until the year 2106: exact enough to choose which key is evicted.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct Seconds(pub(super) u32);

impl Seconds {
    pub(super) const NEVER: Self = Self(u32::MAX);

    /// The first whole second not before `moment`.
    pub(super) fn after(moment: Timestamp) -> Self {
        Self(u32::try_from(moment.as_micros().div_ceil(1_000_000)).unwrap_or(u32::MAX))
    }

    /// The last whole second not after `moment`.
    pub(super) fn before(moment: Timestamp) -> Self {
        Self(u32::try_from(moment.as_micros() / 1_000_000).unwrap_or(u32::MAX))
    }

    pub(super) fn begins(self) -> Timestamp {
        Timestamp::from_micros(u64::from(self.0) * 1_000_000)
    }
}
