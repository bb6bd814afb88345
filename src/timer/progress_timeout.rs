//! A timeout for a peer that moves nothing for too long, or too little.

use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use tokio::time::Instant;

use super::LazyTimer;
use super::MinRate;

/// The timer runs only while we wait for the peer. It is not touched while bytes move.
#[derive(Debug)]
pub struct ProgressTimeout {
    idle: Duration,
    /// Since when the peer has moved nothing.
    since: Option<Instant>,
    min_rate: MinRate,
    timer: LazyTimer,
}

impl ProgressTimeout {
    /// Expires after `idle` without a byte, or below `rate` bytes per second over each `idle` after the first; zero: no
    /// minimum.
    pub fn new(idle: Duration, rate: u32) -> Self {
        Self { idle, since: None, min_rate: MinRate::new(rate, idle), timer: LazyTimer::default() }
    }

    /// Called while we wait for the peer. Ready when the peer took too long.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.since.get_or_insert_with(|| {
            let now = Instant::now();
            self.min_rate.start_wait(now);
            now
        });
        let silent = since + self.idle;
        loop {
            let due = self.min_rate.span_ends().map_or(silent, |span_ends| span_ends.min(silent));
            ready!(self.timer.poll_at(due, cx));
            if due == silent || self.min_rate.is_too_slow(Instant::now()) {
                return Poll::Ready(());
            }
        }
    }

    /// The peer has moved bytes, whether or not we waited for them.
    pub fn moved(&mut self, bytes: usize) {
        if self.since.take().is_some() && self.min_rate.is_set() {
            self.min_rate.end_wait(Instant::now());
        }
        self.min_rate.add_moved(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const IDLE: Duration = Duration::from_secs(10);

    /// How many bytes come before the timeout expires, if `bytes` come every `every`, at most 100 times.
    async fn come(rate: u32, every: Duration, bytes: usize) -> usize {
        let mut timeout = ProgressTimeout::new(IDLE, rate);
        for round in 0..100 {
            let expired = tokio::time::timeout(every, poll_fn(|cx| timeout.poll_expired(cx))).await;
            if expired.is_ok() {
                return round * bytes;
            }
            timeout.moved(bytes);
        }
        100 * bytes
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_and_a_slow_peer_run_into_the_timeout() {
        let second = Duration::from_secs(1);
        assert_eq!(come(0, 11 * second, 1000).await, 0);
        assert_eq!(come(0, 9 * second, 1).await, 100);
        // Ten seconds to begin, and ten that are judged. What comes at their last moment has come.
        assert_eq!(come(10, second, 9).await, 20 * 9);
        assert_eq!(come(10, second, 10).await, 1000);
        assert_eq!(come(10, 11 * second, 1_000_000).await, 0);
    }
}
