//! How many requests a second a key gets in this process.

use std::time::Duration;

use crate::clock::Timestamp;

/// How many requests a second a key gets in this process: the most in the last two spans of a second or, while it is idle, longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    since: Timestamp,
    counted: u32,
    last: u32,
    before: u32,
}

impl Pace {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { since: now, counted: 0, last: 0, before: 0 }
    }

    /// Counts a request.
    pub(super) fn count(&mut self, now: Timestamp) {
        let elapsed = now.since(self.since);
        if elapsed >= SECOND {
            let counted = u128::from(self.counted) * SECOND.as_micros() / elapsed.as_micros();
            let last = u32::try_from(counted).unwrap_or(u32::MAX);
            *self = Self { since: now, counted: 0, last, before: self.last };
        }
        self.counted = self.counted.saturating_add(1);
    }

    pub(super) fn a_second(&self) -> u32 {
        self.last.max(self.before)
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_the_busier_of_the_last_two_seconds() {
        let at = |millis: u64| Timestamp::from_micros(millis * 1000);
        let mut pace = Pace::new(at(0));
        (0..10).for_each(|tenth| pace.count(at(100 * tenth)));
        assert_eq!(pace.a_second(), 0);
        pace.count(at(1000));
        assert_eq!(pace.a_second(), 10);
        pace.count(at(1900));
        assert_eq!(pace.a_second(), 10);
        pace.count(at(2000));
        assert_eq!(pace.a_second(), 10);
        pace.count(at(11_000));
        assert_eq!(pace.a_second(), 2);
        pace.count(at(20_000));
        assert_eq!(pace.a_second(), 0);
    }
}
