//! What of a connection's answers waits for its socket: heads and parts that h2 was given and has not written.

use std::mem;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use http::HeaderMap;
use parking_lot::Mutex;

/// How much it is, and which streams wait until it is less. All of it has room in the client's windows: it is written as
/// soon as the client reads. The lock is for the compiler: connection and streams are on one core.
#[derive(Clone, Debug, Default)]
pub(super) struct Unwritten(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    bytes: usize,
    /// In the order in which they came.
    streams: Vec<Waker>,
}

impl Unwritten {
    /// Ready when there is room for more. A part, or a head, may be more than there is room for.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.0.lock();
        if queue.bytes < MOST {
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

    /// A head, as HTTP/2 counts it.
    pub(super) fn add_head(&self, fields: &HeaderMap) {
        self.add(fields.iter().map(|(name, value)| name.as_str().len() + value.len() + OVERHEAD).sum());
    }

    /// So many bytes were written, whatever they are.
    pub(super) fn wrote(&self, bytes: usize) {
        let mut queue = self.0.lock();
        let left = queue.bytes.saturating_sub(bytes);
        queue.set(left);
    }

    /// All of it was.
    pub(super) fn is_through(&self) {
        self.0.lock().set(0);
    }
}

impl Queue {
    fn set(&mut self, bytes: usize) {
        self.bytes = bytes;
        if bytes < MOST {
            mem::take(&mut self.streams).into_iter().for_each(Waker::wake);
        }
    }
}

/// In bytes. Many short answers, or what a few streams keep for their clients.
const MOST: usize = 512 * 1024;

/// What a field counts beside its text (RFC 9113, section 6.5.2).
const OVERHEAD: usize = 32;
