//! What algorithms share in which each rate counts for itself: several rates pass together, and counts survive a
//! change of rates.

use std::borrow::Cow;

use serde::Deserialize;
use serde::Serialize;

use super::Algorithm;
use super::Rate;
use super::Rates;
use super::Standing;
use super::Standings;
use super::memory::Memory;
use super::memory::span;

/// A rate as windows are told of it, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) count: u64,
    pub(super) length: u64,
    pub(super) algorithm: Algorithm,
}

/// What one rate remembers of one key.
pub(super) trait Window: Clone + std::fmt::Debug {
    /// Nothing counted.
    fn new(terms: Terms) -> Self;

    /// Whether what was counted was counted for such a window.
    fn fits(&self, terms: Terms) -> bool;

    /// The window's length in microseconds.
    fn length(&self) -> u64;

    /// The same counts for another window. Where it is not known when exactly something was counted, it is taken to
    /// have been as late as possible, but not later than `now`: nothing is forgotten early.
    fn carried(&self, terms: Terms, now: u64) -> Self;

    /// When `units` more have room; `None` when that is now.
    fn opens_at(&self, terms: Terms, units: u64, now: u64) -> Option<u64>;

    /// Counts `units`, whether or not there is room.
    fn charge(&mut self, terms: Terms, units: u64, now: u64);

    /// Counts `units` no more that were counted at `moment`.
    fn take_back(&mut self, terms: Terms, units: u64, moment: u64);

    /// The most units that have room now.
    fn remaining(&self, terms: Terms, now: u64) -> u64;

    /// The most units that have room when nothing is counted.
    fn capacity(terms: Terms) -> u64 {
        terms.count
    }

    /// From when on this says the same as nothing counted.
    fn expires_at(&self, terms: Terms) -> u64;
}

/// The windows of one key, one for each rate in the order of the rates; none before the first charge.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Windows<W>(Box<[W]>);

impl Terms {
    pub(super) fn of(rate: &Rate, algorithm: Algorithm) -> Self {
        Self { count: u64::from(rate.count.get()), length: rate.window(), algorithm }
    }
}

impl<W: Window> Windows<W> {
    pub(super) fn new() -> Self {
        Self(Box::default())
    }

    /// The window of the rate at `position`, as it is or as it would be carried on.
    fn window(&self, position: usize, terms: Terms, now: u64) -> Cow<'_, W> {
        match self.0.get(position) {
            Some(window) if window.fits(terms) => Cow::Borrowed(window),
            _ => Cow::Owned(self.carried(terms, now)),
        }
    }

    /// All windows counted the same requests: the shortest that is long enough knows best, else the longest.
    fn carried(&self, terms: Terms, now: u64) -> W {
        let source = self.0.iter().min_by_key(|window| {
            let length = window.length();
            if length >= terms.length { (0, length) } else { (1, u64::MAX - length) }
        });
        match source {
            Some(window) if window.fits(terms) => window.clone(),
            Some(window) => window.carried(terms, now),
            None => W::new(terms),
        }
    }

    /// Makes the windows those of `rates`.
    fn follow(&mut self, rates: &Rates, algorithm: Algorithm, now: u64) {
        let all_fit = self.0.len() == rates.as_slice().len()
            && self.0.iter().zip(rates).all(|(window, rate)| window.fits(Terms::of(rate, algorithm)));
        if !all_fit {
            self.0 = rates.iter().map(|rate| self.carried(Terms::of(rate, algorithm), now)).collect();
        }
    }
}

impl<W: Window> Memory for Windows<W> {
    fn opens_at(&self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> Option<u64> {
        let opens = |(position, rate)| {
            let terms = Terms::of(rate, algorithm);
            self.window(position, terms, now).opens_at(terms, u64::from(cost), now)
        };
        rates.iter().enumerate().filter_map(opens).max()
    }

    fn charge(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> u64 {
        self.follow(rates, algorithm, now);
        for (window, rate) in self.0.iter_mut().zip(rates) {
            window.charge(Terms::of(rate, algorithm), u64::from(cost), now);
        }
        now
    }

    /// From the windows as they are: where the rates changed since, they are carried on without it later.
    fn take_back(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, moment: u64) {
        for (position, window) in self.0.iter_mut().enumerate() {
            let rate = rates.as_slice().get(position).or(rates.as_slice().last());
            if let Some(rate) = rate {
                window.take_back(Terms::of(rate, algorithm), u64::from(cost), moment);
            }
        }
    }

    fn standings(&self, rates: &Rates, algorithm: Algorithm, now: u64) -> Standings {
        let mut standings = Standings::new();
        for (position, rate) in rates.iter().enumerate() {
            let terms = Terms::of(rate, algorithm);
            let window = self.window(position, terms, now);
            let remaining = window.remaining(terms, now);
            let more = if remaining < W::capacity(terms) { window.opens_at(terms, remaining + 1, now) } else { None };
            standings.push(Standing { remaining, reset: span(now, more.unwrap_or(now)) });
        }
        standings
    }

    fn expires_at(&self, rates: &Rates, algorithm: Algorithm) -> u64 {
        let expires = |(position, rate)| {
            let terms = Terms::of(rate, algorithm);
            self.window(position, terms, u64::MAX).expires_at(terms)
        };
        rates.iter().enumerate().map(expires).max().unwrap_or_default()
    }
}
