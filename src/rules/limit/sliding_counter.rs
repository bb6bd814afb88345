//! Two counters for each rate, in windows aligned to multiples of their length since the epoch.

use serde::{Deserialize, Serialize};

use super::window::{Window, WindowSpec};
use crate::rules::limit::window::{scaled_down, scaled_up};

/// The counts of one aligned window and of the one before it. Counters stop at `u32::MAX`.
///
/// A rate of N per W has room for c units when `current + floor(previous * (W - elapsed) / W) + c <= N`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct SlidingCounter {
    length: u64,
    /// Which window since the epoch.
    number: u64,
    current: u32,
    previous: u32,
}

/// The two counters as they are at some moment.
struct Counts {
    begins: u64,
    elapsed: u64,
    current: u64,
    previous: u64,
}

impl SlidingCounter {
    fn seen(&self, now: u64) -> Counts {
        // A clock that steps back stays at the beginning of the last window.
        let number = (now / self.length).max(self.number);
        let (current, previous) = match number - self.number {
            0 => (self.current, self.previous),
            1 => (0, self.current),
            _ => (0, 0),
        };
        let begins = number * self.length;
        let elapsed = now.saturating_sub(begins);
        Counts { begins, elapsed, current: u64::from(current), previous: u64::from(previous) }
    }

    /// How long after the beginning of a window the weight of the `previous` count falls to `room`.
    fn weight_falls_at(&self, previous: u64, room: u64) -> u64 {
        if previous <= room {
            return 0;
        }
        // floor(previous * (W - elapsed) / W) <= room holds when W - elapsed < (room + 1) * W / previous.
        self.length + 1 - scaled_up(room + 1, self.length, previous)
    }

    fn used(&self, now: u64) -> u64 {
        let seen = self.seen(now);
        seen.current + scaled_down(seen.previous, self.length - seen.elapsed, self.length)
    }
}

impl Window for SlidingCounter {
    fn new(spec: WindowSpec) -> Self {
        Self { length: spec.length, number: 0, current: 0, previous: 0 }
    }

    fn fits(&self, spec: WindowSpec) -> bool {
        self.length == spec.length
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn carried(&self, spec: WindowSpec, now: u64) -> Self {
        let begins = self.number * self.length;
        let mut carried = Self::new(spec);
        carried.charge(spec, u64::from(self.previous), begins.saturating_sub(1));
        carried.charge(spec, u64::from(self.current), now.clamp(begins, begins + self.length - 1));
        carried
    }

    fn opens_at(&self, spec: WindowSpec, units: u64, now: u64) -> Option<u64> {
        if self.used(now) + units <= spec.count {
            return None;
        }
        let seen = self.seen(now);
        let ends = seen.begins + self.length;
        let Some(room) = spec.count.checked_sub(units) else { return Some(ends + self.length) };
        Some(match room.checked_sub(seen.current) {
            Some(room) => seen.begins + self.weight_falls_at(seen.previous, room),
            None => ends + self.weight_falls_at(seen.current, room),
        })
    }

    fn charge(&mut self, _terms: WindowSpec, units: u64, now: u64) {
        let seen = self.seen(now);
        let counted = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        self.number = seen.begins / self.length;
        self.previous = counted(seen.previous);
        self.current = counted(seen.current + units);
    }

    fn take_back(&mut self, _terms: WindowSpec, units: u64, moment: u64) {
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        match self.number.checked_sub(moment / self.length) {
            Some(0) => self.current = self.current.saturating_sub(units),
            Some(1) => self.previous = self.previous.saturating_sub(units),
            _ => {}
        }
    }

    fn remaining(&self, spec: WindowSpec, now: u64) -> u64 {
        spec.count.saturating_sub(self.used(now))
    }

    fn expires_at(&self, _terms: WindowSpec) -> u64 {
        let windows = match (self.current, self.previous) {
            (0, 0) => return 0,
            (0, _) => 1,
            _ => 2,
        };
        (self.number + windows) * self.length
    }
}
