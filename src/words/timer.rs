//! Timers of connections: a cheap deadline, a least rate, the timeout that joins both, and one that our own lag does not
//! shorten.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

// A timer that is cheap while its deadline only moves away: it is rearmed when it fires, not when the deadline moves.

/// One timer for many deadlines in a row.
///
/// A thread that was busy or stopped finds its timers due together with everything that its peers have done meanwhile. So
/// before a deadline counts, the sockets are asked once more: callers look at their socket first, and at the timer where
/// nothing has come.
#[derive(Default)]
pub struct LazyTimer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// The last poll of the sockets, after the deadline has passed. It is seldom needed.
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
                return self.poll_sockets(cx);
            }
            // The deadline has moved away since the timer was armed.
            sleep.as_mut().reset(deadline);
        }
        self.last_look = None;
        Poll::Pending
    }

    fn poll_sockets(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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

// A minimum rate at which a peer has to send or to read.

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

// A timeout for a peer, in which the lag of our own thread does not count.
//
// A timer of a thread that was busy or stopped fires late, and at once with everything else that has waited: the answer
// may be in the socket. Trusting such a timer would blame the peer for a busy gateway. So the time is counted in
// [steps](STEPS): a step counts its own short span, also if the thread was late, and after each step the sockets are
// polled before the timeout counts.

/// A span is counted in this many steps. A thread that stops for any time adds at most two of them.
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
        // First: data that has arrived is taken, even if the timer has fired.
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
    // A timer can fire before the sockets were polled: a wait that a signal interrupts returns no events, and a wait on
    // many sockets returns the events of some. The first turn polls them; by the second turn, the tasks between the
    // socket and the waiting task have run.
    for _ in 0..2 {
        yield_now().await;
    }
}

// A timeout for a peer that moves nothing for too long, or too little.

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
    use std::io::Write;
    use std::os::unix::net;
    use std::pin::pin;
    use std::thread;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    use super::*;

    const SPAN: Duration = Duration::from_secs(10);

    /// Moves these numbers of bytes in each span, at a minimum of 10 a second, and compares the verdicts at the ends of
    /// the spans.
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
