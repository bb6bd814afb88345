//! The requests of an HTTP/2 connection, each a task of its own, with an end to waiting for a client that opens a
//! stream and does not read it.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Connection;
use super::conversation::log_panic;
use crate::alarm::Alarm;

/// Spawns the streams of one connection.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    connection: Arc<Connection>,
    body_idle: Duration,
    /// The stream whose service was called last; hyper hands us its task right after.
    opening: Arc<Mutex<Option<Arc<StreamProgress>>>>,
}

impl Streams {
    pub(super) fn new(connection: Arc<Connection>, body_idle: Duration) -> Self {
        Self { connection, body_idle, opening: Arc::default() }
    }

    /// The service is called for a stream.
    pub(super) fn open(&self) -> Arc<StreamProgress> {
        let progress = Arc::new(StreamProgress::default());
        *self.opening.lock() = Some(Arc::clone(&progress));
        progress
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let progress = self.opening.lock().take().unwrap_or_default();
        let open = Open::new(Arc::clone(&self.connection));
        let body_idle = self.body_idle;
        tokio::spawn(async move {
            let mut future = pin!(future);
            let mut reader = Reader { body_idle, seen: 0, deadline: None, alarm: Alarm::default() };
            poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
                Ok(Poll::Ready(())) => Poll::Ready(()),
                // Given up, the stream is reset; the connection and its other streams go on.
                Ok(Poll::Pending) => reader.poll(&progress, cx),
                Err(panic) => {
                    log_panic(&*panic);
                    Poll::Ready(())
                }
            })
            .await;
            drop(open);
        });
    }
}

/// Counts a stream as long as it is there.
#[derive(Debug)]
struct Open {
    connection: Arc<Connection>,
}

impl Open {
    fn new(connection: Arc<Connection>) -> Self {
        connection.progress.stream_opened();
        Self { connection }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.progress.stream_closed();
    }
}

/// Where the answer on a stream stands.
#[derive(Debug, Default)]
pub(super) struct StreamProgress {
    /// Counts the parts that hyper took, doubled; odd while it waits for the next one from us.
    parts: AtomicU32,
}

impl StreamProgress {
    pub(super) fn note_frame(&self, taken: bool) {
        let parts = self.parts.load(Ordering::Relaxed) & !1;
        self.parts.store(if taken { parts.wrapping_add(2) } else { parts | 1 }, Ordering::Relaxed);
    }
}

/// Gives up on a client that does not make room for the next part of its answer.
#[derive(Debug)]
struct Reader {
    body_idle: Duration,
    seen: u32,
    deadline: Option<Instant>,
    alarm: Alarm,
}

impl Reader {
    fn poll(&mut self, progress: &StreamProgress, cx: &mut Context<'_>) -> Poll<()> {
        let parts = progress.parts.load(Ordering::Relaxed);
        if parts == 0 || parts % 2 == 1 {
            // The answer, or its next part, is not there yet: not the client's doing.
            self.deadline = None;
            return Poll::Pending;
        }
        let fresh = parts != self.seen;
        self.seen = parts;
        let deadline = match self.deadline {
            Some(deadline) if !fresh => deadline,
            _ => *self.deadline.insert(Instant::now() + self.body_idle),
        };
        self.alarm.poll_at(deadline, cx)
    }
}
