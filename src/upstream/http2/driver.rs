//! Runs a connection until it has ended, or until requests have not used it for a while.

use std::future::poll_fn;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::Connection;
use tokio::select;
use tokio::time::sleep;
use tracing::debug;

use super::connection::ConnectionState;
use super::keepalive;
use super::read_monitor::LastRead;
use super::read_monitor::ReadMonitor;
use crate::upstream::server::Server;

/// What must run for requests to be sent over a connection.
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
        () = keepalive::ping_unanswered(pings, last_read, state) => {
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

/// Requests at a time over one connection, even if the server allows more.
pub(super) const MAX_STREAMS: u32 = 100;

/// Long enough for a request that has just opened the connection to find it.
const IDLE_ONCE_REMOVED: Duration = Duration::from_millis(250);

/// How exactly an idle timeout is kept.
const MIN_IDLE: Duration = Duration::from_millis(10);
