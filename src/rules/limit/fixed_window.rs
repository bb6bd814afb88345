//! A window that opens with the first counted request and stays open for its length.

use serde::{Deserialize, Serialize};

use super::window::{Window, WindowSpec};

/// When the window opened, and the count in it. The counter stops at `u32::MAX`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct FixedWindow {
    length: u64,
    opened: u64,
    count: u32,
}

impl FixedWindow {
    fn closes(&self) -> u64 {
        self.opened + self.length
    }

    /// The count in the open window.
    fn used(&self, now: u64) -> u64 {
        if now < self.closes() { u64::from(self.count) } else { 0 }
    }
}

impl Window for FixedWindow {
    fn new(spec: WindowSpec) -> Self {
        Self { length: spec.length, opened: 0, count: 0 }
    }

    fn fits(&self, spec: WindowSpec) -> bool {
        self.length == spec.length
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn carried(&self, spec: WindowSpec, _now: u64) -> Self {
        Self { length: spec.length, ..self.clone() }
    }

    fn opens_at(&self, spec: WindowSpec, units: u64, now: u64) -> Option<u64> {
        match self.used(now) {
            used if used + units <= spec.count => None,
            0 => Some(now + self.length),
            _ => Some(self.closes()),
        }
    }

    fn charge(&mut self, _terms: WindowSpec, units: u64, now: u64) {
        let used = self.used(now);
        if used == 0 {
            self.opened = now;
        }
        self.count = u32::try_from(used + units).unwrap_or(u32::MAX);
    }

    fn take_back(&mut self, _terms: WindowSpec, units: u64, moment: u64) {
        if self.opened <= moment && moment < self.closes() {
            self.count = self.count.saturating_sub(u32::try_from(units).unwrap_or(u32::MAX));
        }
    }

    fn remaining(&self, spec: WindowSpec, now: u64) -> u64 {
        spec.count.saturating_sub(self.used(now))
    }

    fn expires_at(&self, _terms: WindowSpec) -> u64 {
        if self.count == 0 { 0 } else { self.closes() }
    }
}
