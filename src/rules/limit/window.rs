//! The common part of the algorithms that count each rate separately: several rates pass together, and counts survive a
//! change of rates.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Algorithm, Rate, Rates, Standing, Standings};
use crate::rules::limit::state::{RateMemory, span};

/// A rate in microseconds, and its algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowSpec {
    pub(super) count: u64,
    pub(super) length: u64,
    pub(super) algorithm: Algorithm,
}

/// The state of one rate for one key.
pub(super) trait Window: Clone + std::fmt::Debug {
    /// Nothing counted.
    fn new(spec: WindowSpec) -> Self;

    /// Whether the counts belong to a window of this specification.
    fn fits(&self, spec: WindowSpec) -> bool;

    /// The window's length in microseconds.
    fn length(&self) -> u64;

    /// Converts the counts to another window. If the exact moment of a count is unknown, the latest possible one is
    /// taken, but none after `now`, so that no count expires early.
    fn carried(&self, spec: WindowSpec, now: u64) -> Self;

    /// When `units` more have room; `None`: now.
    fn opens_at(&self, spec: WindowSpec, units: u64, now: u64) -> Option<u64>;

    /// Counts `units`, whether or not there is room.
    fn charge(&mut self, spec: WindowSpec, units: u64, now: u64);

    /// Takes back `units` that were counted at `moment`.
    fn take_back(&mut self, spec: WindowSpec, units: u64, moment: u64);

    /// The most units that have room now.
    fn remaining(&self, spec: WindowSpec, now: u64) -> u64;

    /// The most units that have room in a fresh window.
    fn capacity(spec: WindowSpec) -> u64 {
        spec.count
    }

    /// From when on this equals a fresh window.
    fn expires_at(&self, spec: WindowSpec) -> u64;
}

/// The windows of one key, one for each rate in the order of the rates. Empty before the first charge.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Windows<W>(Box<[W]>);

impl WindowSpec {
    pub(super) fn of(rate: &Rate, algorithm: Algorithm) -> Self {
        Self { count: u64::from(rate.count.get()), length: rate.window(), algorithm }
    }
}

impl<W: Window> Windows<W> {
    pub(super) fn new() -> Self {
        Self(Box::default())
    }

    /// The window of the rate at `position`, as it is or carried over from another rate.
    fn window(&self, position: usize, spec: WindowSpec, now: u64) -> Cow<'_, W> {
        match self.0.get(position) {
            Some(window) if window.fits(spec) => Cow::Borrowed(window),
            _ => Cow::Owned(self.carried(spec, now)),
        }
    }

    /// A window for a new rate. All windows counted the same requests, so it takes the counts of the shortest one that
    /// is long enough, else of the longest.
    fn carried(&self, spec: WindowSpec, now: u64) -> W {
        let source = self.0.iter().min_by_key(|window| {
            let length = window.length();
            if length >= spec.length { (0, length) } else { (1, u64::MAX - length) }
        });
        match source {
            Some(window) if window.fits(spec) => window.clone(),
            Some(window) => window.carried(spec, now),
            None => W::new(spec),
        }
    }

    /// Replaces the windows that do not belong to `rates`.
    fn follow(&mut self, rates: &Rates, algorithm: Algorithm, now: u64) {
        let all_fit = self.0.len() == rates.as_slice().len()
            && self.0.iter().zip(rates).all(|(window, rate)| window.fits(WindowSpec::of(rate, algorithm)));
        if !all_fit {
            self.0 = rates.iter().map(|rate| self.carried(WindowSpec::of(rate, algorithm), now)).collect();
        }
    }
}

impl<W: Window> RateMemory for Windows<W> {
    fn opens_at(&self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> Option<u64> {
        let opens = |(position, rate)| {
            let spec = WindowSpec::of(rate, algorithm);
            self.window(position, spec, now).opens_at(spec, u64::from(cost), now)
        };
        rates.iter().enumerate().filter_map(opens).max()
    }

    fn charge(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> u64 {
        self.follow(rates, algorithm, now);
        for (window, rate) in self.0.iter_mut().zip(rates) {
            window.charge(WindowSpec::of(rate, algorithm), u64::from(cost), now);
        }
        now
    }

    /// Takes back from the windows as they are. Where the rates changed since, later windows are made without these
    /// units.
    fn take_back(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, moment: u64) {
        for (position, window) in self.0.iter_mut().enumerate() {
            let rate = rates.as_slice().get(position).or(rates.as_slice().last());
            if let Some(rate) = rate {
                window.take_back(WindowSpec::of(rate, algorithm), u64::from(cost), moment);
            }
        }
    }

    fn standings(&self, rates: &Rates, algorithm: Algorithm, now: u64) -> Standings {
        let mut standings = Standings::new();
        for (position, rate) in rates.iter().enumerate() {
            let spec = WindowSpec::of(rate, algorithm);
            let window = self.window(position, spec, now);
            let remaining = window.remaining(spec, now);
            let more = if remaining < W::capacity(spec) { window.opens_at(spec, remaining + 1, now) } else { None };
            standings.push(Standing { remaining, reset: span(now, more.unwrap_or(now)) });
        }
        standings
    }

    fn expires_at(&self, rates: &Rates, algorithm: Algorithm) -> u64 {
        let expires = |(position, rate)| {
            let spec = WindowSpec::of(rate, algorithm);
            self.window(position, spec, u64::MAX).expires_at(spec)
        };
        rates.iter().enumerate().map(expires).max().unwrap_or_default()
    }
}

// Fractions of whole numbers, rounded once: multiplied first, then divided.

/// `amount * part / whole`, rounded down. `whole` is above zero; a result that does not fit is `u64::MAX`.
pub(super) fn scaled_down(amount: u64, part: u64, whole: u64) -> u64 {
    match amount.checked_mul(part) {
        Some(product) => product / whole,
        None => fitting(u128::from(amount) * u128::from(part) / u128::from(whole)),
    }
}

/// `amount * part / whole`, rounded up. `whole` is above zero; a result that does not fit is `u64::MAX`.
pub(super) fn scaled_up(amount: u64, part: u64, whole: u64) -> u64 {
    divided_up(u128::from(amount) * u128::from(part), whole)
}

/// `amount / whole`, rounded up. `whole` is above zero; a result that does not fit is `u64::MAX`.
pub(super) fn divided_up(amount: u128, whole: u64) -> u64 {
    match u64::try_from(amount) {
        Ok(amount) => amount.div_ceil(whole),
        Err(_) => fitting(amount.div_ceil(u128::from(whole))),
    }
}

/// `amount / whole`, rounded down. `whole` is above zero; a result that does not fit is `u64::MAX`.
pub(super) fn divided_down(amount: u128, whole: u64) -> u64 {
    match u64::try_from(amount) {
        Ok(amount) => amount / whole,
        Err(_) => fitting(amount / u128::from(whole)),
    }
}

fn fitting(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::any;
    use proptest::proptest;

    use super::*;

    proptest! {
        #[test]
        fn nothing_is_lost_to_rounding_or_overflow(amount in any::<u64>(), part in any::<u64>(), whole in 1..u64::MAX) {
            let product = u128::from(amount) * u128::from(part);
            let exact = |quotient: u128| u64::try_from(quotient).unwrap_or(u64::MAX);
            assert_eq!(scaled_down(amount, part, whole), exact(product / u128::from(whole)));
            assert_eq!(scaled_up(amount, part, whole), exact(product.div_ceil(u128::from(whole))));
            assert_eq!(divided_down(product, whole), exact(product / u128::from(whole)));
            assert_eq!(divided_up(product, whole), exact(product.div_ceil(u128::from(whole))));
        }
    }
}
