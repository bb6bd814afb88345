//! A minimum rate at which a peer has to send or to read.

use std::time::Duration;

use tokio::time::Instant;

/// Measures one direction of one exchange over spans of waiting time. Time in which we do not wait for the peer does not
/// count; bytes that move in that time do.
#[derive(Debug)]
pub struct MinRate {
    /// Bytes per second; zero: no minimum.
    least: u32,
    span: Duration,
    /// The current span: how long we waited in it, and how many bytes moved.
    waited: Duration,
    moved: u64,
    /// The first span is not judged: the peer may need it to begin.
    has_begun: bool,
    /// The part of the current wait that starts here is not in `waited` yet.
    since: Option<Instant>,
}

impl MinRate {
    /// At least `least` bytes per second over each `span` after the first.
    pub fn new(least: u32, span: Duration) -> Self {
        Self { least, span, waited: Duration::ZERO, moved: 0, has_begun: false, since: None }
    }

    /// Whether there is a minimum. Without one, no other method needs to be called.
    pub fn is_set(&self) -> bool {
        self.least > 0
    }

    /// Adds bytes that moved.
    pub fn add_moved(&mut self, bytes: u64) {
        self.moved = self.moved.saturating_add(bytes);
    }

    /// We wait for the peer from now on, or still do.
    pub fn start_wait(&mut self, now: Instant) {
        if self.is_set() {
            self.since.get_or_insert(now);
        }
    }

    /// We no longer wait for the peer.
    pub fn end_wait(&mut self, now: Instant) {
        self.count(now);
        self.since = None;
    }

    /// When the current span ends if we keep waiting until then.
    pub fn span_ends(&self) -> Option<Instant> {
        Some(self.since? + self.span.saturating_sub(self.waited))
    }

    /// If the current span is over: whether too little moved in it. The next span then begins.
    pub fn is_too_slow(&mut self, now: Instant) -> bool {
        self.count(now);
        if !self.is_set() || self.waited < self.span {
            return false;
        }
        let wanted = self.waited.as_secs_f64() * f64::from(self.least);
        #[expect(clippy::cast_precision_loss, reason = "more than 2^53 bytes are never too slow")]
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

    /// Moves so many bytes in each span, at a minimum of 10 a second, and compares the verdicts at the ends of the spans.
    #[track_caller]
    fn check(moved: &[u64], expected: &[bool]) {
        let (mut min_rate, mut now) = (MinRate::new(10, SPAN), Instant::now());
        min_rate.start_wait(now);
        let judged: Vec<bool> = moved
            .iter()
            .map(|bytes| {
                min_rate.add_moved(*bytes);
                now += SPAN / 2;
                assert!(!min_rate.is_too_slow(now), "in the middle of a span");
                assert_eq!(min_rate.span_ends(), Some(now + SPAN / 2));
                now += SPAN / 2;
                min_rate.is_too_slow(now)
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
        let (mut min_rate, start) = (MinRate::new(10, SPAN), Instant::now());
        for round in 0..10 {
            let begins = start + round * 10 * SPAN;
            min_rate.start_wait(begins);
            min_rate.end_wait(begins + SPAN / 5);
            assert_eq!(min_rate.span_ends(), None);
            // The second span ends with the tenth wait.
            assert_eq!(min_rate.is_too_slow(begins + 9 * SPAN), round == 9);
        }
    }

    #[test]
    fn without_a_rate_nothing_is_too_slow() {
        let (mut min_rate, start) = (MinRate::new(0, SPAN), Instant::now());
        min_rate.start_wait(start);
        assert_eq!(min_rate.span_ends(), None);
        assert!((1..9).all(|span| !min_rate.is_too_slow(start + span * SPAN)));
    }
}
