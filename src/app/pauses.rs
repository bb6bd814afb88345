//! How long to wait before a source that did not answer is asked again.

use std::time::Duration;

/// Pauses that grow with each failure in a row.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
    longest: Duration,
}

/// After the first failure.
const FIRST: Duration = Duration::from_millis(500);

/// By how much pauses differ at most, so that gateways that lost a source together do not come back together.
const SPREAD: f64 = 0.2;

impl Pauses {
    pub(super) fn up_to(longest: Duration) -> Self {
        Self { next: FIRST.min(longest), longest }
    }

    /// The next pause. `random` is from 0 to 1.
    pub(super) fn next(&mut self, random: f64) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause.mul_f64(1.0 + SPREAD * (2.0 * random - 1.0))
    }

    /// The source has answered.
    pub(super) fn reset(&mut self) {
        self.next = FIRST.min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_an_answer() {
        let mut pauses = Pauses::up_to(Duration::from_secs(3));
        let millis: Vec<_> = (0..5).map(|_| pauses.next(0.5).as_millis()).collect();
        assert_eq!(millis, [500, 1000, 2000, 3000, 3000]);
        pauses.reset();
        assert_eq!(pauses.next(0.0), Duration::from_millis(400));
        assert_eq!(pauses.next(1.0), Duration::from_millis(1200));
    }
}
