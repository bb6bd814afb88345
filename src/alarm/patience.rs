//! Waits for one side of an exchange, which may be neither silent for long nor slow for a while.

use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use tokio::time::Instant;

use super::Alarm;
use super::pace::Pace;

/// The timer runs while the other side is awaited and is not touched while it moves.
#[derive(Debug)]
pub struct Patience {
    idle: Duration,
    /// Since when it is silent.
    since: Option<Instant>,
    pace: Pace,
    alarm: Alarm,
}

impl Patience {
    /// For so long without a byte, and for so many bytes per second over each such time after the first; zero: any.
    pub fn new(idle: Duration, rate: u32) -> Self {
        Self { idle, since: None, pace: Pace::new(rate, idle), alarm: Alarm::default() }
    }

    /// It is waited for; ready when it has been for too long.
    pub fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.since.get_or_insert_with(|| {
            let now = Instant::now();
            self.pace.waits(now);
            now
        });
        let silent = since + self.idle;
        loop {
            let due = self.pace.due().map_or(silent, |due| due.min(silent));
            ready!(self.alarm.poll_at(due, cx));
            if due == silent || self.pace.is_too_slow(Instant::now()) {
                return Poll::Ready(());
            }
        }
    }

    /// It has moved so many bytes, waited for or not.
    pub fn moved(&mut self, bytes: usize) {
        if self.since.take().is_some() && self.pace.is_kept() {
            self.pace.rests(Instant::now());
        }
        self.pace.moves(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const IDLE: Duration = Duration::from_secs(10);

    /// How many bytes come before patience is lost, if `bytes` of 100 come every `every`.
    async fn come(rate: u32, every: Duration, bytes: usize) -> usize {
        let mut patience = Patience::new(IDLE, rate);
        for round in 0..100 {
            let lost = tokio::time::timeout(every, poll_fn(|cx| patience.poll_lost(cx))).await;
            if lost.is_ok() {
                return round * bytes;
            }
            patience.moved(bytes);
        }
        100 * bytes
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_lost_with_who_is_silent_and_with_who_is_slow() {
        let second = Duration::from_secs(1);
        assert_eq!(come(0, 11 * second, 1000).await, 0);
        assert_eq!(come(0, 9 * second, 1).await, 100);
        // Ten seconds to begin, and ten that are judged.
        assert_eq!(come(10, second, 9).await, 19 * 9);
        assert_eq!(come(10, second, 10).await, 1000);
        assert_eq!(come(10, 11 * second, 1_000_000).await, 0);
    }
}
