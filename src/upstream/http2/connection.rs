//! What requests share of one connection: how to send, and how many are under way.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use bytes::Bytes;
use h2::client::SendRequest;

/// One connection.
#[derive(Debug)]
pub(super) struct Http2Connection {
    pub(super) sender: SendRequest<Bytes>,
    pub(super) state: Arc<ConnectionState>,
}

#[derive(Debug)]
pub(super) struct ConnectionState {
    /// Requests under way.
    streams: AtomicUsize,
    /// What the server allows, and no more than our own bound.
    max_streams: AtomicUsize,
    /// It carries no further request.
    retired: AtomicBool,
    /// A request used it since [`Self::was_used`] was last called.
    used: AtomicBool,
}

/// Counts one request as under way on a connection until it is dropped.
#[derive(Debug)]
pub(super) struct StreamGuard(Arc<ConnectionState>);

impl Http2Connection {
    /// Whether it can carry a further request, as far as is known.
    pub(super) fn is_usable(&self) -> bool {
        let mut sender = self.sender.clone();
        let polled = sender.poll_ready(&mut Context::from_waker(Waker::noop()));
        !matches!(polled, Poll::Ready(Err(_))) && !self.state.retired.load(Ordering::Relaxed)
    }
}

impl ConnectionState {
    pub(super) fn new(max_streams: usize) -> Arc<Self> {
        Arc::new(Self {
            streams: AtomicUsize::new(0),
            max_streams: AtomicUsize::new(max_streams),
            retired: AtomicBool::new(false),
            used: AtomicBool::new(true),
        })
    }

    pub(super) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    pub(super) fn has_room(&self) -> bool {
        self.streams() < self.max_streams.load(Ordering::Relaxed)
    }

    pub(super) fn set_max_streams(&self, max_streams: usize) {
        self.max_streams.store(max_streams, Ordering::Relaxed);
    }

    /// From now on the connection carries no further request.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Whether a request used it since this was last called.
    pub(super) fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }
}

impl StreamGuard {
    pub(super) fn new(state: &Arc<ConnectionState>) -> Self {
        state.streams.fetch_add(1, Ordering::Relaxed);
        state.used.store(true, Ordering::Relaxed);
        Self(Arc::clone(state))
    }

    /// The connection carries no request after this one.
    pub(super) fn retire_connection(&self) {
        self.0.retire();
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
        self.0.used.store(true, Ordering::Relaxed);
    }
}
