//! The bytes of responses that h2 was given and has not written to the socket yet.

use std::mem;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use http::HeaderMap;
use parking_lot::Mutex;

/// Counts these bytes, and the streams that wait until they are fewer. All of them fit into the client's windows, so they are
/// written as soon as the client reads. The lock is for the compiler: connection and streams are on one core.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBacklog(Arc<Mutex<BacklogState>>);

#[derive(Debug, Default)]
struct BacklogState {
    bytes: usize,
    /// Streams whose answers have begun since that was asked.
    answered: u32,
    /// The tasks of waiting streams, in the order of their arrival.
    streams: Vec<Waker>,
}

impl WriteBacklog {
    /// Ready when there is room. A single part or head may exceed the limit.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.0.lock();
        if queue.bytes < MAX_BACKLOG {
            return Poll::Ready(());
        }
        if !queue.streams.iter().any(|stream| stream.will_wake(cx.waker())) {
            queue.streams.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub(super) fn add(&self, bytes: usize) {
        self.0.lock().bytes += bytes;
    }

    /// Adds a head, as HTTP/2 counts its size.
    pub(super) fn add_head(&self, fields: &HeaderMap) {
        self.add(fields.iter().map(|(name, value)| name.as_str().len() + value.len() + OVERHEAD).sum());
    }

    /// The answer of a stream has begun.
    pub(super) fn answer(&self, fields: &HeaderMap) {
        self.add_head(fields);
        self.0.lock().answered += 1;
    }

    /// How many answers have begun since the last call.
    pub(super) fn take_answered(&self) -> u32 {
        mem::take(&mut self.0.lock().answered)
    }

    /// Notes a write of any bytes to the socket.
    pub(super) fn wrote(&self, bytes: usize) {
        let mut queue = self.0.lock();
        let left = queue.bytes.saturating_sub(bytes);
        queue.set(left);
    }

    /// Everything is written.
    pub(super) fn clear(&self) {
        self.0.lock().set(0);
    }
}

impl BacklogState {
    fn set(&mut self, bytes: usize) {
        self.bytes = bytes;
        if bytes < MAX_BACKLOG {
            mem::take(&mut self.streams).into_iter().for_each(Waker::wake);
        }
    }
}

/// In bytes: many short responses, or the send buffers of a few streams.
const MAX_BACKLOG: usize = 512 * 1024;

/// In bytes: what each field counts beside its text (RFC 9113, section 6.5.2).
const OVERHEAD: usize = 32;
