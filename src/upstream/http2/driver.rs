//! Runs a connection until it has ended, or until requests have not used it for a while.

use std::future::{pending, poll_fn};
use std::io;
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::Connection;
use h2::{Ping, PingPong};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::select;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::connection::ConnectionState;
use crate::upstream::http2::head_check::HeadCheck;
use crate::upstream::server::Server;
use crate::upstream::stream::ServerStream;
use crate::words::timer::peer_timeout;

/// Requests at a time over one connection, even if the server allows more.
pub(super) const MAX_STREAMS: u32 = 100;

/// Long enough for a request that has just opened the connection to find it.
const IDLE_ONCE_REMOVED: Duration = Duration::from_millis(250);

/// How exactly an idle timeout is kept.
const MIN_IDLE: Duration = Duration::from_millis(10);

/// The task that must run so that requests are sent over a connection.
#[derive(Debug)]
pub(super) struct Driver {
    connection: Connection<ReadMonitor, Bytes>,
    last_read: LastRead,
    state: Arc<ConnectionState>,
    server: Arc<Server>,
    /// How long the connection is kept without a request.
    idle: Duration,
}

impl Driver {
    pub(super) fn new(
        connection: Connection<ReadMonitor, Bytes>,
        last_read: LastRead,
        state: Arc<ConnectionState>,
        server: Arc<Server>,
        idle: Duration,
    ) -> Self {
        Self { connection, last_read, state, server, idle }
    }

    /// Returns when the connection has ended. Calls `retired` once no further request may use it.
    pub(super) async fn run(self, retired: impl FnOnce(&Server, &Arc<ConnectionState>)) {
        let Self { connection, last_read, state, server, idle } = self;
        let mut driven = pin!(drive(connection, &last_read, &state, &server));
        let has_ended = select! {
            () = &mut driven => true,
            () = unused(&state, idle, &server) => false,
        };
        state.retire();
        retired(&server, &state);
        // Requests under way end first: dropping the driver would lose those that are not yet written.
        if !has_ended {
            driven.await;
        }
    }
}

/// Returns when a connection has ended. A connection that answers no ping is dropped, and its requests fail.
async fn drive(
    mut connection: Connection<ReadMonitor, Bytes>,
    last_read: &LastRead,
    state: &ConnectionState,
    server: &Server,
) {
    let pings = connection.ping_pong();
    let driven = poll_fn(|cx| {
        let polled = Pin::new(&mut connection).poll(cx);
        state.set_max_streams(max_streams(&connection));
        polled
    });
    select! {
        ended = driven => {
            if let Err(error) = ended {
                debug!(server = %server.name(), %error, "connection to a server ended");
            }
        }
        () = ping_unanswered(pings, last_read, state) => {
            debug!(server = %server.name(), "a server does not answer a ping, closing its connection");
        }
    }
}

/// The requests that the server allows at a time, and no more than our own bound.
pub(super) fn max_streams(connection: &Connection<ReadMonitor, Bytes>) -> usize {
    connection.max_concurrent_send_streams().min(MAX_STREAMS as usize)
}

/// Returns when no request has used the connection for `idle`, or for a moment once the server is removed.
async fn unused(state: &ConnectionState, idle: Duration, server: &Server) {
    loop {
        if server.removed.is_cancelled() {
            sleep(IDLE_ONCE_REMOVED).await;
        } else {
            select! {
                () = sleep(idle.max(MIN_IDLE)) => {}
                () = server.removed.cancelled() => continue,
            }
        }
        if !state.was_used() && state.streams() == 0 {
            return;
        }
    }
}

// Notices a server that vanished while requests are under way.

/// The server is pinged when requests are under way and nothing was read for so long.
const PING_AFTER: Duration = Duration::from_secs(10);

const PONG_WITHIN: Duration = Duration::from_secs(5);

/// Returns when requests are under way, nothing has been read for long, and the server did not answer a ping.
pub(super) async fn ping_unanswered(pings: Option<PingPong>, last_read: &LastRead, state: &ConnectionState) {
    let Some(mut pings) = pings else { return pending().await };
    let mut next_check = Instant::now() + PING_AFTER;
    loop {
        sleep_until(next_check).await;
        let due = last_read.at() + PING_AFTER;
        next_check = Instant::now() + PING_AFTER;
        if due > Instant::now() {
            next_check = due;
        } else if state.streams() > 0 {
            let pong = peer_timeout(PONG_WITHIN, pin!(pings.ping(Ping::opaque()))).await;
            if !matches!(pong, Ok(Ok(_))) {
                return;
            }
        }
    }
}

// A stream that knows when its first and its last byte arrived, and checks the heads in between.

/// A stream that reports its first byte, keeps when it was last read from, and has its heads checked before they are read.
#[derive(Debug)]
pub(super) struct ReadMonitor {
    stream: ServerStream,
    first_byte: Option<oneshot::Sender<()>>,
    last_read: LastRead,
    heads: HeadCheck,
}

/// When bytes last arrived. Reader and writer are on one core: the compiler asks for the lock.
#[derive(Clone, Debug)]
pub(super) struct LastRead(Arc<Mutex<Instant>>);

impl LastRead {
    pub(super) fn at(&self) -> Instant {
        *self.0.lock()
    }
}

impl ReadMonitor {
    /// The receiver gets `()` with the first byte.
    pub(super) fn new(stream: ServerStream, heads: HeadCheck) -> (Self, oneshot::Receiver<()>, LastRead) {
        let (sender, first_byte) = oneshot::channel();
        let last_read = LastRead(Arc::new(Mutex::new(Instant::now())));
        (Self { stream, first_byte: Some(sender), last_read: last_read.clone(), heads }, first_byte, last_read)
    }
}

impl AsyncRead for ReadMonitor {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.heads
                .read(&buf.filled()[before..])
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            *self.last_read.0.lock() = Instant::now();
            if let Some(sender) = self.first_byte.take() {
                // The receiver may be gone.
                let _ = sender.send(());
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ReadMonitor {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
