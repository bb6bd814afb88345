//! A timer that costs nothing while deadlines only move away: it is armed again when it goes off, not when the
//! deadline moves.

pub mod pace;
pub mod patience;

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::time::Instant;
use tokio::time::Sleep;
use tokio::time::sleep_until;

/// One timer for many deadlines, one after the other.
#[derive(Debug, Default)]
pub struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Ready once `deadline` has passed; otherwise the task is woken then, or earlier.
    pub fn poll_at(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if deadline <= Instant::now() {
                return Poll::Ready(());
            }
            // It was armed for a deadline that has moved away since.
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    /// Whether it has gone off since it was last armed.
    pub fn rang(&self) -> bool {
        self.sleep.as_ref().is_some_and(|sleep| sleep.is_elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_deadline_that_moved_away_is_awaited_whole() {
        let mut alarm = Alarm::default();
        let start = Instant::now();
        let near = start + Duration::from_millis(20);
        let far = start + Duration::from_millis(80);

        let first = poll_fn(|cx| Poll::Ready(alarm.poll_at(near, cx))).await;
        assert!(first.is_pending());
        poll_fn(|cx| alarm.poll_at(far, cx)).await;

        assert!(start.elapsed() >= Duration::from_millis(80));
    }

    #[tokio::test]
    async fn a_nearer_deadline_is_met() {
        let mut alarm = Alarm::default();
        let start = Instant::now();

        let first = poll_fn(|cx| Poll::Ready(alarm.poll_at(start + Duration::from_secs(60), cx))).await;
        assert!(first.is_pending());
        poll_fn(|cx| alarm.poll_at(start + Duration::from_millis(20), cx)).await;

        assert!(start.elapsed() < Duration::from_secs(30));
        assert!(alarm.rang());
    }
}
