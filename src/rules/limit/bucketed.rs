//! A counter for each slice of a window, summed over one slice more than the window has.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::Algorithm;
use super::window::{Window, WindowSpec};

/// A counter for each aligned slice of time in which something was counted.
///
/// The current slice and the `slices` before it cover every window that ends now, so that no window ever holds more
/// than the count. Slices are dropped when later ones hold the whole count. There are never more slices than the count,
/// nor more than the window has and one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Bucketed {
    length: u64,
    width: u64,
    /// The sum over all buckets.
    held: u64,
    buckets: VecDeque<Bucket>,
    /// How much was dropped with buckets that still counted, as far as is known. None of it is later than the oldest
    /// bucket.
    lost: u64,
}

/// One slice of time. The counter stops at `u32::MAX`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Bucket {
    /// Which slice since the epoch.
    number: u64,
    count: u32,
}

impl Bucketed {
    /// The slice that `now` lies in. A clock that steps back stays in the last slice with a count.
    fn number(&self, now: u64) -> u64 {
        let last = self.buckets.back().map_or(0, |bucket| bucket.number);
        last.max(now / self.width)
    }

    /// The first slice in which `bucket` is no longer summed.
    fn outlived(bucket: Bucket, spec: WindowSpec) -> u64 {
        bucket.number + slices(spec) + 1
    }

    fn used(&self, spec: WindowSpec, now: u64) -> u64 {
        let number = self.number(now);
        let is_old = |bucket: &&Bucket| Self::outlived(**bucket, spec) <= number;
        // Most keys are idle or busy. Then the newest or the oldest bucket is enough to know.
        if self.buckets.back().is_none_or(|newest| is_old(&newest)) {
            return 0;
        }
        self.held - self.buckets.iter().take_while(is_old).map(|bucket| u64::from(bucket.count)).sum::<u64>()
    }

    /// Answers how much the bucket held.
    fn drop_oldest(&mut self) -> u64 {
        let count = self.buckets.pop_front().map_or(0, |bucket| u64::from(bucket.count));
        self.held -= count;
        count
    }
}

impl Window for Bucketed {
    fn new(spec: WindowSpec) -> Self {
        Self { length: spec.length, width: width(spec), held: 0, buckets: VecDeque::new(), lost: 0 }
    }

    fn fits(&self, spec: WindowSpec) -> bool {
        self.length == spec.length && self.width == width(spec)
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn carried(&self, spec: WindowSpec, now: u64) -> Self {
        let mut carried = Self::new(spec);
        for bucket in &self.buckets {
            let begins = bucket.number * self.width;
            carried.charge(spec, u64::from(bucket.count), now.clamp(begins, begins + self.width - 1));
        }
        carried
    }

    fn opens_at(&self, spec: WindowSpec, units: u64, now: u64) -> Option<u64> {
        let mut used = self.used(spec, now);
        if used + units <= spec.count {
            return None;
        }
        let number = self.number(now);
        for bucket in self.buckets.iter().filter(|bucket| Self::outlived(**bucket, spec) > number) {
            used -= u64::from(bucket.count);
            if used + units <= spec.count {
                return Some(Self::outlived(*bucket, spec) * self.width);
            }
        }
        Some(now + self.length)
    }

    fn charge(&mut self, spec: WindowSpec, units: u64, now: u64) {
        let number = self.number(now);
        while self.buckets.front().is_some_and(|oldest| Self::outlived(*oldest, spec) <= number) {
            self.drop_oldest();
            // Counts that were lost before are older than this bucket.
            self.lost = 0;
        }
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let counted = match self.buckets.back_mut() {
            Some(bucket) if bucket.number == number => {
                let fitting = units.min(u32::MAX - bucket.count);
                bucket.count += fitting;
                fitting
            }
            _ => {
                self.buckets.push_back(Bucket { number, count: units });
                units
            }
        };
        self.held += u64::from(counted);
        while self.buckets.front().is_some_and(|oldest| self.held - u64::from(oldest.count) >= spec.count) {
            self.lost += self.drop_oldest();
        }
    }

    fn take_back(&mut self, _terms: WindowSpec, units: u64, moment: u64) {
        let number = moment / self.width;
        let Ok(place) = self.buckets.binary_search_by_key(&number, |bucket| bucket.number) else { return };
        let bucket = &mut self.buckets[place];
        let taken = bucket.count.min(u32::try_from(units).unwrap_or(u32::MAX));
        bucket.count -= taken;
        // Lost counts come back, at the latest time that they may have been counted.
        let oldest = &mut self.buckets[0];
        let back = u32::try_from(self.lost).unwrap_or(u32::MAX).min(taken).min(u32::MAX - oldest.count);
        oldest.count += back;
        self.held -= u64::from(taken - back);
        self.lost -= u64::from(back);
        self.buckets.retain(|bucket| bucket.count > 0);
    }

    fn remaining(&self, spec: WindowSpec, now: u64) -> u64 {
        spec.count.saturating_sub(self.used(spec, now))
    }

    fn expires_at(&self, spec: WindowSpec) -> u64 {
        self.buckets.back().map_or(0, |newest| Self::outlived(*newest, spec) * self.width)
    }
}

/// How many slices make up a window.
fn slices(spec: WindowSpec) -> u64 {
    match spec.algorithm {
        Algorithm::BucketedWindow { buckets: Some(buckets) } => u64::from(buckets.get()),
        _ if spec.length >= LONG => spec.length.div_ceil(MINUTE),
        _ => 10,
    }
}

/// The width of a slice in microseconds. All slices together are never shorter than the window.
fn width(spec: WindowSpec) -> u64 {
    match spec.algorithm {
        Algorithm::BucketedWindow { buckets: Some(buckets) } => spec.length.div_ceil(u64::from(buckets.get())),
        _ if spec.length >= LONG => MINUTE,
        _ => spec.length.div_ceil(10),
    }
}

const MINUTE: u64 = 60_000_000;

/// Windows of this length or more have slices of one minute.
const LONG: u64 = 10 * MINUTE;
