//! Every charge of a key, and the budget that is left by the definition of each algorithm.

use portcullis::rules::limit::Algorithm;

use crate::support::midnight;

/// All that was ever charged to one key: when, and how much.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(pub(crate) Vec<(u64, u64)>);

/// A rate for brute force, with its window in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) algorithm: Algorithm,
    pub(crate) most: u64,
    pub(crate) window: u64,
    /// What has no room may be charged.
    pub(crate) overflows: bool,
}

impl Terms {
    /// How many may pass at once when nothing was counted.
    pub(crate) fn capacity(self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket { burst: Some(burst) } => u64::from(burst.get()),
            _ => self.most,
        }
    }
}

impl History {
    pub(crate) fn remove(&mut self, entry: (u64, u64)) {
        if let Some(place) = self.0.iter().rposition(|other| *other == entry) {
            self.0.remove(place);
        }
    }

    pub(crate) fn fits(&self, mut terms: impl Iterator<Item = Terms>, cost: u32, now: u64) -> bool {
        terms.all(|terms| self.used(terms, now) + u64::from(cost) <= terms.capacity())
    }

    /// How much of the count is used, by the definition of the algorithm.
    pub(crate) fn used(&self, terms: Terms, now: u64) -> u64 {
        let Terms { window, .. } = terms;
        match terms.algorithm {
            Algorithm::SlidingWindowLog => self.sum(|at| at + window > now),
            Algorithm::SlidingWindowCounter => {
                // Times of the history begin at midnight. Windows are aligned to the epoch, so the times are shifted to
                // it.
                let epoch = midnight().as_micros();
                let number = |at: u64| (epoch + at) / window;
                let elapsed = (epoch + now) % window;
                let current = self.sum(|at| number(at) == number(now));
                let previous = self.sum(|at| number(at) + 1 == number(now));
                let faded = u128::from(previous) * u128::from(window - elapsed) / u128::from(window);
                current + u64::try_from(faded).expect("no more than there was")
            }
            Algorithm::BucketedWindow { buckets } => {
                let (slices, width) = match buckets {
                    Some(buckets) => (u64::from(buckets.get()), window.div_ceil(u64::from(buckets.get()))),
                    None if window >= 600_000_000 => (window.div_ceil(60_000_000), 60_000_000),
                    None => (10, window / 10),
                };
                let epoch = midnight().as_micros();
                let number = |at: u64| (epoch + at) / width;
                self.sum(|at| number(at) + slices >= number(now))
            }
            Algorithm::FixedWindow => {
                let (mut opened, mut used) = (None, 0);
                for (at, units) in &self.0 {
                    if opened.is_none_or(|opened| *at >= opened + window) {
                        (opened, used) = (Some(*at), 0);
                    }
                    used += units;
                }
                if opened.is_some_and(|opened| now < opened + window) { used } else { 0 }
            }
            Algorithm::TokenBucket { .. } => {
                let level = if terms.overflows {
                    self.level_of_attempts(terms, now)
                } else {
                    self.level_of_requests(terms, now)
                };
                // Part of a unit in the bucket leaves no room for a whole one.
                u64::try_from(level.div_ceil(u128::from(window))).expect("no more than fits")
            }
        }
    }

    fn sum(&self, counts: impl Fn(u64) -> bool) -> u64 {
        self.0.iter().filter(|(at, _)| counts(*at)).map(|(_, units)| units).sum()
    }

    /// How full the bucket is, W-fold: the most that came since any moment, less what leaked since then.
    fn level_of_requests(&self, terms: Terms, now: u64) -> u128 {
        let since = |begin: u64| {
            let came = u128::from(self.sum(|at| at >= begin)) * u128::from(terms.window);
            came.saturating_sub(u128::from(now - begin) * u128::from(terms.most))
        };
        self.0.iter().map(|(begin, _)| since(*begin)).max().unwrap_or_default()
    }

    /// The same where the overflow is lost: computed charge by charge.
    fn level_of_attempts(&self, terms: Terms, now: u64) -> u128 {
        let (mut level, mut last) = (0_u128, 0);
        for (at, units) in self.0.iter().copied().chain([(now, 0)]) {
            level = level.saturating_sub(u128::from(at - last) * u128::from(terms.most));
            level += u128::from(units) * u128::from(terms.window);
            level = level.min(u128::from(terms.capacity()) * u128::from(terms.window));
            last = at;
        }
        level
    }
}
