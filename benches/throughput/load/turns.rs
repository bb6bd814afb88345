//! How many requests a load sends, or for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// When a load ends.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Ends {
    After(Duration),
    /// When all connections together have sent so many.
    Requests(usize),
}

/// Counts the requests of all connections until the load ends.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    taken: Arc<AtomicUsize>,
    /// What is sent before is not counted.
    counted_from: Instant,
    until: Option<Instant>,
    at_most: usize,
}

impl Turns {
    /// Begins now, and counts after the warm-up.
    pub(super) fn new(warm_up: Duration, ends: Ends) -> Self {
        let counted_from = Instant::now() + warm_up;
        let (until, at_most) = match ends {
            Ends::After(span) => (Some(counted_from + span), usize::MAX),
            Ends::Requests(count) => (None, count),
        };
        Self { taken: Arc::default(), counted_from, until, at_most }
    }

    /// The number of the next request and the time, unless the load has ended.
    pub(super) fn take(&self) -> Option<(usize, Instant)> {
        let now = Instant::now();
        if self.until.is_some_and(|until| now >= until) {
            return None;
        }
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        (turn < self.at_most).then_some((turn, now))
    }

    /// Whether what was sent then is counted.
    pub(super) fn is_counted(&self, sent: Instant) -> bool {
        sent >= self.counted_from
    }

    pub(super) fn are_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until) || self.taken.load(Ordering::Relaxed) >= self.at_most
    }
}
