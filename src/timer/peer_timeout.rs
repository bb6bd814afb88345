//! A timeout for a peer, in which the lag of our own thread does not count.
//!
//! A timer of a thread that was busy or stopped fires late, and at once with everything else that has waited: the answer
//! may be in the socket. Whoever believes such a timer takes a busy gateway for a dead peer. So the time is counted in
//! [steps](STEPS), each of which counts for little however late the thread was, and after each step the sockets are asked before the
//! timer is believed.

use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::Instant;
use tokio::time::sleep;

/// A span is counted in this many steps. A thread that stops, for however long, adds no more than two of them.
const STEPS: u32 = 16;

/// The peer did not do it in time, although this thread was there to see it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerTimedOut;

/// Waits for something that a peer does, for `span` of the time that this thread was there to see it.
///
/// `work` is pinned by the caller, so that a large future is not moved.
pub async fn peer_timeout<T>(span: Duration, mut work: impl Future<Output = T> + Unpin) -> Result<T, PeerTimedOut> {
    let begun = Instant::now();
    tokio::select! {
        biased;
        done = &mut work => return Ok(done),
        () = sleep(span / STEPS) => {}
    }
    // Boxed, because most work is done by now.
    let rest = Box::pin(async {
        let mut seen = look(begun, span / STEPS).await;
        while seen < span {
            seen += step(span).await;
        }
    });
    tokio::select! {
        // First: what has arrived is taken, whatever the timer says.
        biased;
        done = work => Ok(done),
        () = rest => Err(PeerTimedOut),
    }
}

/// Waits for one step of a span, and returns how much of the span it counts for.
pub async fn step(span: Duration) -> Duration {
    let (begun, step) = (Instant::now(), span / STEPS);
    sleep(step).await;
    look(begun, step).await
}

/// Asks the sockets, and returns how much the time since `begun` counts for.
async fn look(begun: Instant, step: Duration) -> Duration {
    ask_sockets().await;
    begun.elapsed().min(2 * step)
}

/// Has everything that has arrived by now wake its task.
pub(super) async fn ask_sockets() {
    // A timer can fire before the sockets were asked: a wait that a signal interrupts brings no events, and one of many
    // sockets brings those of some. The first turn asks them, and in the second the tasks between the socket and the waiting
    // one have run.
    for _ in 0..2 {
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net;
    use std::pin::pin;
    use std::thread;

    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn a_silent_peer_is_waited_for_a_whole_span_and_little_more() {
        let (mut near, _far) = UnixStream::pair().expect("sockets");
        let (begin, span) = (Instant::now(), Duration::from_millis(40));
        assert!(peer_timeout(span, pin!(near.read_u8())).await.is_err());
        assert!(begin.elapsed() >= span);
    }

    /// A thread that is stopped for longer than the span, while the peer answers.
    #[tokio::test]
    async fn an_answer_that_came_while_the_thread_was_away_is_taken() {
        for _ in 0..20 {
            let (near, mut far) = net::UnixStream::pair().expect("sockets");
            near.set_nonblocking(true).expect("a socket");
            let mut near = UnixStream::from_std(near).expect("a runtime");
            let span = Duration::from_millis(8);
            tokio::spawn(async move {
                thread::sleep(4 * span);
                far.write_all(b"a").expect("an open socket");
            });
            assert!(matches!(peer_timeout(span, pin!(near.read_u8())).await, Ok(Ok(b'a'))));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_counts_for_little() {
        let (begin, span) = (Instant::now(), Duration::from_millis(100));
        tokio::spawn(async { tokio::time::advance(Duration::from_secs(5)).await });
        assert_eq!(peer_timeout(span, std::future::pending::<()>()).await, Err(PeerTimedOut));
        assert!(begin.elapsed() >= Duration::from_millis(5_085), "{:?}", begin.elapsed());
    }
}
