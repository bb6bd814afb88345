//! Moments and spans in tenths of a second, in four bytes.

use std::time::Duration;

use crate::clock::Timestamp;

/// Where the moments of a table begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin(Timestamp);

/// A moment, in tenths of a second since the origin of the table.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Tenths(pub(super) u32);

/// Sessions that a table takes over may have been used this long before it begins.
const BEFORE: u64 = 4 * 365 * 86_400 * 1_000_000;

/// In microseconds.
const TENTH: u64 = 100_000;

impl Origin {
    pub(super) fn of(now: Timestamp) -> Self {
        Self(Timestamp::from_micros(now.as_micros().saturating_sub(BEFORE)))
    }

    pub(super) fn tenths(self, moment: Timestamp) -> Tenths {
        let micros = moment.as_micros().saturating_sub(self.0.as_micros());
        Tenths(u32::try_from(micros / TENTH).unwrap_or(u32::MAX))
    }

    pub(super) fn moment(self, tenths: Tenths) -> Timestamp {
        self.0 + Duration::from_micros(u64::from(tenths.0) * TENTH)
    }
}

impl Tenths {
    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub(super) fn since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    pub(super) fn is_another_second(self, other: Self) -> bool {
        self.0 / 10 != other.0 / 10
    }
}

/// The tenths of a span that have begun.
pub(super) fn tenths_of(span: Duration) -> u32 {
    u32::try_from(span.as_micros().div_ceil(u128::from(TENTH))).unwrap_or(u32::MAX)
}

pub(super) fn span_of(tenths: u32) -> Duration {
    Duration::from_micros(u64::from(tenths) * TENTH)
}
