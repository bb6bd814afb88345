//! The parts of a connection that its requests share: the sender, and the number of requests under way.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::select;
use tokio::sync::watch;

use crate::upstream::connect::connect;
use crate::upstream::error::FailureCause;
use crate::upstream::http2::driver::{Driver, MAX_STREAMS, ReadMonitor, max_streams};
use crate::upstream::http2::exchange::Http2Stream;
use crate::upstream::http2::head_check::{HeadCheck, ResponseStreams};
use crate::upstream::response::ServerProtocol;
use crate::upstream::server::{Server, ServerId};
use crate::upstream::servers::{HeadBounds, Timeouts, UpstreamSettings};
use crate::words::timer::{PeerTimedOut, peer_timeout};

/// One connection.
#[derive(Debug)]
pub(super) struct Http2Connection {
    pub(super) sender: SendRequest<Bytes>,
    pub(super) responses: ResponseStreams,
    pub(super) state: Arc<ConnectionState>,
}

#[derive(Debug)]
pub(super) struct ConnectionState {
    /// Requests under way.
    streams: AtomicUsize,
    /// The server's bound, up to the gateway's own.
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

// Opens a connection and waits until the server has answered in HTTP/2.

/// The bytes that a server may send of one answer before it is read.
const STREAM_WINDOW: u32 = 64 * 1024;

/// The bytes that a server may send in one frame.
const MAX_FRAME: u32 = 16 * 1024;

/// The bytes of one request's body that are buffered before the server reads them.
const MAX_SEND_BUFFER: usize = 64 * 1024;

/// A new connection, and the driver that must run for requests to be sent over it.
pub(super) async fn open(
    server: &Arc<Server>,
    timeouts: &Timeouts,
    heads: HeadBounds,
) -> Result<(Http2Connection, Driver), FailureCause> {
    let stream = connect(server, timeouts, ServerProtocol::Http2).await?;
    let responses = ResponseStreams::default();
    let head_check = HeadCheck::new(heads.http2_list_size(), responses.clone());
    let (stream, first_byte, last_read) = ReadMonitor::new(stream, head_check);
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(MAX_STREAMS as usize)
        .initial_window_size(STREAM_WINDOW)
        // A client that does not read its answer must not hold up the others.
        .initial_connection_window_size(STREAM_WINDOW * MAX_STREAMS)
        .max_frame_size(MAX_FRAME)
        .max_header_list_size(heads.http2_list_size())
        .max_send_buffer_size(MAX_SEND_BUFFER);
    let (sender, mut connection) =
        builder.handshake(stream).await.map_err(|error| FailureCause::Closed(error.into()))?;
    let server_speaks = async {
        select! {
            biased;
            ended = &mut connection => Err(ended.err().map_or_else(not_http2, |error| FailureCause::Closed(error.into()))),
            _ = first_byte => Ok(()),
        }
    };
    peer_timeout(timeouts.connect, pin!(server_speaks))
        .await
        .map_err(|PeerTimedOut| FailureCause::ConnectTimeout)??;
    // Bytes that have arrived are read now: if they end the connection, it was not HTTP/2.
    let ended = poll_fn(|cx| Poll::Ready(Pin::new(&mut connection).poll(cx).is_ready())).await;
    let most = max_streams(&connection);
    if ended || most == 0 {
        return Err(not_http2());
    }
    server.note_connected();
    let state = ConnectionState::new(most);
    let driver = Driver::new(connection, last_read, Arc::clone(&state), Arc::clone(server), timeouts.idle);
    Ok((Http2Connection { sender, responses, state }, driver))
}

fn not_http2() -> FailureCause {
    FailureCause::Connect(io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP/2"))
}

// The HTTP/2 connections of one core, by server.

/// The connections of one core. Only that core takes the lock, which the compiler asks for.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Http2Pool {
    servers: Mutex<HashMap<ServerId, ServerConnections>>,
}

#[derive(Debug, Default)]
struct ServerConnections {
    open: Vec<Http2Connection>,
    /// A further connection is being opened. Requests that wait for it learn here whether it failed.
    opening: Option<watch::Receiver<Option<Result<(), FailureCause>>>>,
}

impl Http2Pool {
    /// A stream on a connection that is open and has room.
    pub(in crate::upstream) fn open_stream(&self, server: &Server) -> Option<Http2Stream> {
        self.servers.lock().get_mut(&server.id)?.stream(server)
    }

    /// A stream on a connection that has room. Where there is none, one request opens a further connection for all that
    /// wait.
    pub(in crate::upstream) async fn stream(
        self: &Arc<Self>,
        server: &Arc<Server>,
        settings: &UpstreamSettings,
    ) -> Result<Http2Stream, FailureCause> {
        loop {
            let mut opening = {
                let mut servers = self.servers.lock();
                let connections = servers.entry(server.id).or_default();
                if let Some(stream) = connections.stream(server) {
                    return Ok(stream);
                }
                connections.opening.get_or_insert_with(|| self.start_opening(server, settings)).clone()
            };
            match opening.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(Err(cause))) => return Err(cause.again()),
                Ok(_) => {}
                Err(_) => return Err(FailureCause::Connect(io::Error::other("opening a connection was given up"))),
            }
        }
    }

    /// Opens a connection in a task of its own: the request that asked for it may be given up.
    fn start_opening(
        self: &Arc<Self>,
        server: &Arc<Server>,
        settings: &UpstreamSettings,
    ) -> watch::Receiver<Option<Result<(), FailureCause>>> {
        let (done, waiting) = watch::channel(None);
        let (pool, server) = (Arc::downgrade(self), Arc::clone(server));
        let (timeouts, heads) = (settings.timeouts, settings.heads);
        tokio::spawn(async move {
            let opened = match open(&server, &timeouts, heads).await {
                Ok((connection, driver)) => {
                    add(&pool, &server, connection);
                    tokio::spawn(run(driver, Weak::clone(&pool)));
                    Ok(())
                }
                Err(cause) => Err(cause),
            };
            if let Some(pool) = pool.upgrade()
                && let Some(connections) = pool.servers.lock().get_mut(&server.id)
            {
                connections.opening = None;
            }
            done.send_replace(Some(opened));
        });
        waiting
    }
}

impl ServerConnections {
    fn stream(&mut self, server: &Server) -> Option<Http2Stream> {
        self.open.retain(Http2Connection::is_usable);
        // The fullest that has room: connections that are not needed become idle and close.
        let with_room = self.open.iter().filter(|connection| connection.state.has_room());
        let connection = with_room.max_by_key(|connection| connection.state.streams())?;
        Some(Http2Stream::new(connection, server))
    }
}

fn add(pool: &Weak<Http2Pool>, server: &Server, connection: Http2Connection) {
    if let Some(pool) = pool.upgrade()
        && let Some(connections) = pool.servers.lock().get_mut(&server.id)
    {
        connections.open.push(connection);
    }
}

async fn run(driver: Driver, pool: Weak<Http2Pool>) {
    driver.run(|server, state| remove(&pool, server, state)).await;
}

fn remove(pool: &Weak<Http2Pool>, server: &Server, state: &Arc<ConnectionState>) {
    let Some(pool) = pool.upgrade() else { return };
    let mut servers = pool.servers.lock();
    if let Some(connections) = servers.get_mut(&server.id) {
        connections.open.retain(|connection| !Arc::ptr_eq(&connection.state, state));
        if connections.open.is_empty() && connections.opening.is_none() {
            servers.remove(&server.id);
        }
    }
}
