//! A least rate: how much has to come, or to be taken, of what is waited for.

use std::time::Duration;

use tokio::time::Instant;

/// Judges one side of one exchange, over spans in which it is waited for. Time in which nobody waits does not count, and
/// what moves while nobody does speaks for it all the same.
#[derive(Debug)]
pub struct Pace {
    /// Bytes per second; zero: any pace will do.
    least: u32,
    span: Duration,
    /// The present span: how long it was waited for, and what moved.
    waited: Duration,
    moved: u64,
    /// The first span is for beginning.
    has_begun: bool,
    /// From when on the present wait is not in `waited` yet.
    since: Option<Instant>,
}

impl Pace {
    /// At least so many bytes per second, over each `span` after the first.
    pub fn new(least: u32, span: Duration) -> Self {
        Self { least, span, waited: Duration::ZERO, moved: 0, has_begun: false, since: None }
    }

    /// Whether there is a pace to be kept; otherwise nobody has to be told anything.
    pub fn is_kept(&self) -> bool {
        self.least > 0
    }

    /// So many bytes more.
    pub fn moves(&mut self, bytes: u64) {
        self.moved = self.moved.saturating_add(bytes);
    }

    /// It is waited for, from now on or still.
    pub fn waits(&mut self, now: Instant) {
        if self.is_kept() {
            self.since.get_or_insert(now);
        }
    }

    /// It is waited for no more, if it was.
    pub fn rests(&mut self, now: Instant) {
        self.count(now);
        self.since = None;
    }

    /// When there will be something to judge if it is still waited for then.
    pub fn due(&self) -> Option<Instant> {
        Some(self.since? + self.span.saturating_sub(self.waited))
    }

    /// Judges the present span, if it is over: whether too little moved in it. The next one begins.
    pub fn is_too_slow(&mut self, now: Instant) -> bool {
        self.count(now);
        if !self.is_kept() || self.waited < self.span {
            return false;
        }
        let wanted = self.waited.as_secs_f64() * f64::from(self.least);
        #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 bytes nothing is too slow")]
        let is_too_slow = self.has_begun && (self.moved as f64) < wanted;
        self.has_begun = true;
        self.waited = Duration::ZERO;
        self.moved = 0;
        is_too_slow
    }

    fn count(&mut self, now: Instant) {
        if let Some(since) = &mut self.since {
            self.waited += now.saturating_duration_since(*since);
            *since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(10);

    /// What is judged at the end of each of these spans, in which so many bytes moved, by who should move 10 a second.
    #[track_caller]
    fn check(moved: &[u64], expected: &[bool]) {
        let (mut pace, mut now) = (Pace::new(10, SPAN), Instant::now());
        pace.waits(now);
        let judged: Vec<bool> = moved
            .iter()
            .map(|bytes| {
                pace.moves(*bytes);
                now += SPAN / 2;
                assert!(!pace.is_too_slow(now), "in the middle of a span");
                assert_eq!(pace.due(), Some(now + SPAN / 2));
                now += SPAN / 2;
                pace.is_too_slow(now)
            })
            .collect();
        assert_eq!(judged, expected);
    }

    #[test]
    fn each_span_but_the_first_is_judged_by_what_moved_in_it() {
        check(&[0, 100, 99, 1000, 0], &[false, false, true, false, true]);
    }

    #[test]
    fn only_the_time_in_which_it_is_waited_for_counts() {
        let (mut pace, start) = (Pace::new(10, SPAN), Instant::now());
        for round in 0..10 {
            let begins = start + round * 10 * SPAN;
            pace.waits(begins);
            pace.rests(begins + SPAN / 5);
            assert_eq!(pace.due(), None);
            // The second span ends with the tenth wait.
            assert_eq!(pace.is_too_slow(begins + 9 * SPAN), round == 9);
        }
    }

    #[test]
    fn without_a_rate_nothing_is_too_slow() {
        let (mut pace, start) = (Pace::new(0, SPAN), Instant::now());
        pace.waits(start);
        assert_eq!(pace.due(), None);
        assert!((1..9).all(|span| !pace.is_too_slow(start + span * SPAN)));
    }
}
