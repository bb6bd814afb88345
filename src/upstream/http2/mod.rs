//! HTTP/2 to the servers: the connections of one core, each with many requests at a time.

mod exchange;
mod keepalive;
mod read_monitor;
mod upload;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use h2::client::Builder;
use h2::client::Connection;
use h2::client::SendRequest;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::select;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio::time::timeout;
use tracing::debug;

pub(super) use self::exchange::Http2ResponseBody;
pub(super) use self::exchange::Http2Stream;

use self::read_monitor::LastRead;
use self::read_monitor::ReadMonitor;
use super::HeadBounds;
use super::Settings;
use super::Timeouts;
use super::connect::Protocol;
use super::connect::connect;
use super::error::FailureCause;
use super::server::Server;
use super::server::ServerId;

/// The connections of one core. The lock is for the compiler: only one core comes here.
#[derive(Debug, Default)]
pub(super) struct Http2Pool {
    servers: Mutex<HashMap<ServerId, ServerConnections>>,
}

#[derive(Debug)]
struct ServerConnections {
    open: Vec<Http2Connection>,
    /// One more is on its way; whoever waits learns what became of it.
    opening: Option<watch::Receiver<Option<Result<(), FailureCause>>>>,
}

/// One connection.
#[derive(Debug)]
struct Http2Connection {
    sender: SendRequest<Bytes>,
    load: Arc<ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    streams: AtomicUsize,
    /// As many as the server takes at a time, and no more than our own bound.
    most: AtomicUsize,
    /// It carries no further request.
    retired: AtomicBool,
    /// A request used it since the last look.
    used: AtomicBool,
}

impl Http2Pool {
    /// A place on a connection that is there.
    pub(super) fn at_hand(&self, server: &Server) -> Option<Http2Stream> {
        self.servers.lock().get_mut(&server.id)?.take(server)
    }

    /// A place on a connection that has one left; where there is none one more connection is opened, by one request for
    /// all that wait.
    pub(super) async fn stream(
        self: &Arc<Self>,
        server: &Arc<Server>,
        settings: &Settings,
    ) -> Result<Http2Stream, FailureCause> {
        loop {
            let mut opening = {
                let mut servers = self.servers.lock();
                let connections =
                    servers.entry(server.id).or_insert_with(|| ServerConnections { open: Vec::new(), opening: None });
                if let Some(stream) = connections.take(server) {
                    return Ok(stream);
                }
                connections.opening.get_or_insert_with(|| self.begin(server, settings)).clone()
            };
            match opening.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(Err(cause))) => return Err(cause.again()),
                Ok(_) => {}
                Err(_) => return Err(FailureCause::Connect(io::Error::other("opening a connection was given up"))),
            }
        }
    }

    /// In a task of its own: the request that needs it first may be given up.
    fn begin(
        self: &Arc<Self>,
        server: &Arc<Server>,
        settings: &Settings,
    ) -> watch::Receiver<Option<Result<(), FailureCause>>> {
        let (done, waiting) = watch::channel(None);
        let (home, server) = (Arc::downgrade(self), Arc::clone(server));
        let (timeouts, heads) = (settings.timeouts, settings.heads);
        tokio::spawn(async move {
            let opened = open(&server, &timeouts, heads, &home).await;
            if let Some(home) = home.upgrade() {
                let mut servers = home.servers.lock();
                if let Some(connections) = servers.get_mut(&server.id) {
                    connections.opening = None;
                }
            }
            done.send_replace(Some(opened));
        });
        waiting
    }
}

impl ServerConnections {
    fn take(&mut self, server: &Server) -> Option<Http2Stream> {
        self.open.retain(Http2Connection::carries_more);
        // The fullest that has room: what is not needed grows old.
        let with_room = self.open.iter().filter(|connection| connection.load.has_room());
        let connection = with_room.max_by_key(|connection| connection.load.streams.load(Ordering::Relaxed))?;
        Some(Http2Stream::new(connection.sender.clone(), StreamGuard::on(&connection.load), server))
    }
}

impl Http2Connection {
    /// Whether a further request may go over it, as far as is known.
    fn carries_more(&self) -> bool {
        let mut sender = self.sender.clone();
        let polled = sender.poll_ready(&mut Context::from_waker(Waker::noop()));
        !matches!(polled, Poll::Ready(Err(_))) && !self.load.retired.load(Ordering::Relaxed)
    }
}

/// The place of one request on a connection.
#[derive(Debug)]
struct StreamGuard(Arc<ConnectionState>);

impl StreamGuard {
    fn on(load: &Arc<ConnectionState>) -> Self {
        load.streams.fetch_add(1, Ordering::Relaxed);
        load.used.store(true, Ordering::Relaxed);
        Self(Arc::clone(load))
    }

    /// Nothing further is to go over this connection.
    fn retire(&self) {
        self.0.retired.store(true, Ordering::Relaxed);
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
        self.0.used.store(true, Ordering::Relaxed);
    }
}

impl ConnectionState {
    fn has_room(&self) -> bool {
        self.streams.load(Ordering::Relaxed) < self.most.load(Ordering::Relaxed)
    }
}

/// Opens a connection, waits for what the server says of itself, and puts the connection where requests find it.
async fn open(
    server: &Arc<Server>,
    timeouts: &Timeouts,
    heads: HeadBounds,
    home: &Weak<Http2Pool>,
) -> Result<(), FailureCause> {
    let stream = connect(server, timeouts, Protocol::Http2).await?;
    let (read_monitor, first, last_read) = ReadMonitor::new(stream);
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(MOST_STREAMS as usize)
        .initial_window_size(STREAM_WINDOW)
        // Whoever does not read his answer is not to hold up the others.
        .initial_connection_window_size(STREAM_WINDOW * MOST_STREAMS)
        .max_frame_size(MAX_FRAME)
        .max_header_list_size(heads.http2_list_size())
        .max_send_buffer_size(MAX_BUFFER);
    let (sender, mut connection) =
        builder.handshake(read_monitor).await.map_err(|error| FailureCause::Closed(error.into()))?;
    let introduced = async {
        select! {
            biased;
            ended = &mut connection => Err(ended.err().map_or_else(not_http2, |error| FailureCause::Closed(error.into()))),
            _ = first => Ok(()),
        }
    };
    timeout(timeouts.connect, introduced).await.map_err(|_| FailureCause::ConnectTimeout)??;
    // What came is read by now, or was no HTTP/2.
    let ended = poll_fn(|cx| Poll::Ready(Pin::new(&mut connection).poll(cx).is_ready())).await;
    let most = streams(&connection);
    if ended || most == 0 {
        return Err(not_http2());
    }
    server.note_connected();
    let load = Arc::new(ConnectionState {
        streams: AtomicUsize::new(0),
        most: AtomicUsize::new(most),
        retired: AtomicBool::new(false),
        used: AtomicBool::new(true),
    });
    if let Some(home) = home.upgrade()
        && let Some(connections) = home.servers.lock().get_mut(&server.id)
    {
        connections.open.push(Http2Connection { sender, load: Arc::clone(&load) });
    }
    tokio::spawn(keep(connection, last_read, load, Weak::clone(home), Arc::clone(server), timeouts.idle));
    Ok(())
}

/// Has a connection go on until it has ended, or nobody needs it.
async fn keep(
    connection: Connection<ReadMonitor, Bytes>,
    last_read: LastRead,
    load: Arc<ConnectionState>,
    home: Weak<Http2Pool>,
    server: Arc<Server>,
    idle: Duration,
) {
    let mut driven = pin!(drive(connection, &last_read, &load, &server));
    let has_ended = select! {
        () = &mut driven => true,
        () = unused(&load, idle, &server) => false,
    };
    load.retired.store(true, Ordering::Relaxed);
    if let Some(home) = home.upgrade() {
        let mut servers = home.servers.lock();
        if let Some(connections) = servers.get_mut(&server.id) {
            connections.open.retain(|connection| !Arc::ptr_eq(&connection.load, &load));
            if connections.open.is_empty() && connections.opening.is_none() {
                servers.remove(&server.id);
            }
        }
    }
    // Requests under way end first: dropping what drives the connection would give up those not yet written.
    if !has_ended {
        driven.await;
    }
}

/// Returns when a connection has ended. One that does not answer any more is dropped, and its requests fail.
async fn drive(
    mut connection: Connection<ReadMonitor, Bytes>,
    last_read: &LastRead,
    load: &ConnectionState,
    server: &Server,
) {
    let pings = connection.ping_pong();
    let driven = poll_fn(|cx| {
        let polled = Pin::new(&mut connection).poll(cx);
        load.most.store(streams(&connection), Ordering::Relaxed);
        polled
    });
    select! {
        ended = driven => {
            if let Err(error) = ended {
                debug!(server = %server.name(), %error, "connection to a server ended");
            }
        }
        () = keepalive::lost(pings, last_read, load) => {
            debug!(server = %server.name(), "a server does not answer a ping any more, its connection is closed");
        }
    }
}

/// How many the server takes at a time, and no more than our own bound.
fn streams(connection: &Connection<ReadMonitor, Bytes>) -> usize {
    connection.max_concurrent_send_streams().min(MOST_STREAMS as usize)
}

/// Returns when no request used the connection for so long; for a moment, once the server is gone.
async fn unused(load: &ConnectionState, idle: Duration, server: &Server) {
    loop {
        if server.gone.is_cancelled() {
            sleep(IDLE_ONCE_GONE).await;
        } else {
            select! {
                () = sleep(idle.max(LEAST_IDLE)) => {}
                () = server.gone.cancelled() => continue,
            }
        }
        let was_used = load.used.swap(false, Ordering::Relaxed);
        if !was_used && load.streams.load(Ordering::Relaxed) == 0 {
            return;
        }
    }
}

fn not_http2() -> FailureCause {
    FailureCause::Connect(io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP/2"))
}

/// At a time over one connection, whatever more the server would take.
const MOST_STREAMS: u32 = 100;

/// What a server may send of one answer before it is read.
const STREAM_WINDOW: u32 = 64 * 1024;

/// What it may send in one frame.
const MAX_FRAME: u32 = 16 * 1024;

/// What is taken of one request's body before the server reads it.
const MAX_BUFFER: usize = 64 * 1024;

/// Long enough for a request that has just opened the connection to find it.
const IDLE_ONCE_GONE: Duration = Duration::from_millis(250);

/// How exactly an idle timeout is kept.
const LEAST_IDLE: Duration = Duration::from_millis(10);
