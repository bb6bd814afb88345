//! GCRA as a bucket that fills with each request and leaks evenly, without rounding.

use serde::{Deserialize, Serialize};

use super::Algorithm;
use super::window::{Window, WindowSpec};
use crate::rules::limit::window::{divided_down, divided_up};

/// A bucket that leaks N units per W.
///
/// Its level is stored times W: one unit adds W, and N leak in each microsecond, so that all numbers are whole. Denied
/// requests that are charged (`attempts`) fill the bucket to its brim, not beyond. It stays full while they continue,
/// and then opens as after any burst.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct TokenBucket {
    length: u64,
    /// The moment of the level.
    at: u64,
    level: u128,
    /// How much ran over since the bucket was last empty, also times W.
    spilt: u128,
}

impl TokenBucket {
    fn level(&self, spec: WindowSpec, now: u64) -> u128 {
        let leaked = u128::from(spec.count) * u128::from(now.saturating_sub(self.at));
        self.level.saturating_sub(leaked)
    }

    /// `units` of a bucket of this window.
    fn filled_by(&self, units: u64) -> u128 {
        u128::from(units) * u128::from(self.length)
    }
}

impl Window for TokenBucket {
    fn new(spec: WindowSpec) -> Self {
        Self { length: spec.length, at: 0, level: 0, spilt: 0 }
    }

    fn fits(&self, spec: WindowSpec) -> bool {
        self.length == spec.length
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn carried(&self, spec: WindowSpec, _now: u64) -> Self {
        let length = u128::from(self.length);
        let carried = |filled: u128| {
            let whole = filled / length * u128::from(spec.length);
            whole + (filled % length * u128::from(spec.length)).div_ceil(length)
        };
        Self { length: spec.length, at: self.at, level: carried(self.level), spilt: carried(self.spilt) }
    }

    fn opens_at(&self, spec: WindowSpec, units: u64, now: u64) -> Option<u64> {
        let burst = Self::capacity(spec);
        let Some(others) = burst.checked_sub(units) else { return Some(now + self.length) };
        let bound = self.filled_by(others);
        if self.level(spec, now) <= bound {
            return None;
        }
        Some(self.at.saturating_add(divided_up(self.level - bound, spec.count)))
    }

    fn charge(&mut self, spec: WindowSpec, units: u64, now: u64) {
        let level = self.level(spec, now);
        let brim = self.filled_by(Self::capacity(spec)).max(level);
        let filled = level + self.filled_by(units);
        self.level = filled.min(brim);
        self.spilt = if level == 0 { 0 } else { self.spilt } + (filled - self.level);
        self.at = self.at.max(now);
    }

    fn take_back(&mut self, spec: WindowSpec, units: u64, moment: u64) {
        // Without these units the bucket may have been empty meanwhile, and less would have leaked.
        let leaked = u128::from(spec.count) * u128::from(self.at.saturating_sub(moment));
        let sunk = self.filled_by(units).saturating_sub(leaked);
        // Less would have run over, too.
        let kept = sunk.min(self.spilt);
        self.spilt -= kept;
        self.level = self.level.saturating_sub(sunk - kept);
    }

    fn remaining(&self, spec: WindowSpec, now: u64) -> u64 {
        let free = self.filled_by(Self::capacity(spec)).saturating_sub(self.level(spec, now));
        divided_down(free, self.length)
    }

    fn capacity(spec: WindowSpec) -> u64 {
        match spec.algorithm {
            Algorithm::TokenBucket { burst: Some(burst) } => u64::from(burst.get()),
            _ => spec.count,
        }
    }

    fn expires_at(&self, spec: WindowSpec) -> u64 {
        self.at.saturating_add(divided_up(self.level, spec.count))
    }
}
