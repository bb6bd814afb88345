//! A timer that is cheap while its deadline only moves away: it is rearmed when it fires, not when the deadline moves.

use std::fmt;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::time::Instant;
use tokio::time::Sleep;
use tokio::time::sleep_until;

use super::peer_timeout::ask_sockets;

/// One timer for many deadlines in a row.
///
/// A thread that was busy or stopped finds its timers due together with everything that its peers have done meanwhile. So
/// before a deadline counts, the sockets are asked once more: callers look at their socket first, and at the timer where
/// nothing has come.
#[derive(Default)]
pub struct LazyTimer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// Of a deadline that has passed. It is seldom needed.
    last_look: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl LazyTimer {
    /// Ready once `deadline` has passed and the sockets were asked once more. Until then the task is woken at the deadline or
    /// earlier.
    pub fn poll_at(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if deadline <= Instant::now() {
                return self.look_once_more(cx);
            }
            // The deadline has moved away since the timer was armed.
            sleep.as_mut().reset(deadline);
        }
        self.last_look = None;
        Poll::Pending
    }

    fn look_once_more(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let look = self.last_look.get_or_insert_with(|| Box::pin(ask_sockets()));
        let asked = look.as_mut().poll(cx);
        if asked.is_ready() {
            self.last_look = None;
        }
        asked
    }

    /// Whether it has fired since it was last armed.
    pub fn has_fired(&self) -> bool {
        self.sleep.as_ref().is_some_and(|sleep| sleep.is_elapsed())
    }
}

impl fmt::Debug for LazyTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyTimer").field("sleep", &self.sleep).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_deadline_that_moved_away_is_awaited_whole() {
        let mut timer = LazyTimer::default();
        let start = Instant::now();
        let near = start + Duration::from_millis(20);
        let far = start + Duration::from_millis(80);

        let first = poll_fn(|cx| Poll::Ready(timer.poll_at(near, cx))).await;
        assert!(first.is_pending());
        poll_fn(|cx| timer.poll_at(far, cx)).await;

        assert!(start.elapsed() >= Duration::from_millis(80));
    }

    #[tokio::test]
    async fn a_nearer_deadline_is_met() {
        let mut timer = LazyTimer::default();
        let start = Instant::now();

        let first = poll_fn(|cx| Poll::Ready(timer.poll_at(start + Duration::from_secs(60), cx))).await;
        assert!(first.is_pending());
        poll_fn(|cx| timer.poll_at(start + Duration::from_millis(20), cx)).await;

        assert!(start.elapsed() < Duration::from_secs(30));
        assert!(timer.has_fired());
    }
}
