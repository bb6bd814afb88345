//! Opens connections to a server: looks up its name, connects, and begins TLS if the server speaks it.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::{Instant, sleep, timeout};

use super::error::FailureCause;
use super::server::Server;
use super::stream::ServerStream;
use crate::upstream::response::ServerProtocol;
use crate::upstream::server::ServerAddress;
use crate::upstream::servers::Timeouts;
use crate::words::timer::{PeerTimedOut, peer_timeout};

static SHORTAGES: AtomicU64 = AtomicU64::new(0);

/// Between two attempts to open a socket: nothing tells when a descriptor has become free, or a place in a queue.
const PAUSE: Duration = Duration::from_millis(20);

/// When a server has not answered after these times, a further attempt to connect begins beside the earlier ones.
const FURTHER_TRIES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(300), Duration::from_millis(600)];

/// How long a connection may take before a request also takes one that becomes idle.
pub(super) const SLOW: Duration = FURTHER_TRIES[0];

/// How soon a vanished server is noticed on a connection over which nothing is sent.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Opens a connection. Several addresses are tried in turn, each with its share of the time.
pub(super) async fn connect(
    server: &Server,
    timeouts: &Timeouts,
    protocol: ServerProtocol,
) -> Result<ServerStream, FailureCause> {
    match &server.address {
        ServerAddress::Address(address) => {
            connect_to(Place::Address(*address), server, timeouts, protocol, timeouts.connect).await
        }
        ServerAddress::UnixSocket(path) => {
            connect_to(Place::UnixSocket(path), server, timeouts, protocol, timeouts.connect).await
        }
        ServerAddress::Name { host, port } => {
            let deadline = Instant::now() + timeouts.connect;
            let found = peer_timeout(timeouts.connect, pin!(lookup_host((host.as_str(), *port)))).await;
            let addresses: Vec<SocketAddr> =
                found.map_err(|PeerTimedOut| FailureCause::ConnectTimeout)?.map_err(FailureCause::Connect)?.collect();
            first_of(&addresses, server, timeouts, protocol, deadline).await
        }
    }
}

async fn first_of(
    addresses: &[SocketAddr],
    server: &Server,
    timeouts: &Timeouts,
    protocol: ServerProtocol,
    deadline: Instant,
) -> Result<ServerStream, FailureCause> {
    let mut failed = Err(FailureCause::Connect(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        failed = connect_to(Place::Address(*address), server, timeouts, protocol, share).await;
        if failed.is_ok() {
            break;
        }
    }
    failed
}

/// Opens a connection to this place within `patience`.
async fn connect_to(
    place: Place<'_>,
    server: &Server,
    timeouts: &Timeouts,
    protocol: ServerProtocol,
    patience: Duration,
) -> Result<ServerStream, FailureCause> {
    let mut lacks_descriptor = false;
    let connected = async {
        let address = match place {
            Place::Address(address) => address,
            Place::UnixSocket(path) => {
                let stream = with_descriptor(|| unix_stream(path), &mut lacks_descriptor).await?;
                return Ok(ServerStream::Unix(stream));
            }
        };
        let stream = with_descriptor(|| tcp_stream(address), &mut lacks_descriptor).await?;
        prepare(&stream, timeouts.response)?;
        match &server.tls {
            None => Ok(ServerStream::Plain(stream)),
            Some(tls) => tls.handshake(stream, protocol).await.map(|stream| ServerStream::Tls(Box::new(stream))),
        }
    };
    // A connection that was made while this core was busy is used, however late this looks.
    let connected = peer_timeout(patience, pin!(connected)).await;
    match connected {
        Ok(connected) => connected.map_err(FailureCause::Connect),
        Err(PeerTimedOut) if lacks_descriptor => Err(FailureCause::NoDescriptor),
        Err(PeerTimedOut) => Err(FailureCause::ConnectTimeout),
    }
}

/// Where one connection goes.
#[derive(Clone, Copy)]
enum Place<'s> {
    Address(SocketAddr),
    UnixSocket(&'s Path),
}

/// A connected socket. While the process has no descriptor left, this waits until other requests close theirs.
async fn with_descriptor<S, F>(connect: impl Fn() -> F, lacks_descriptor: &mut bool) -> io::Result<S>
where
    F: Future<Output = io::Result<S>>,
{
    loop {
        let connected = connect().await;
        *lacks_descriptor = connected.as_ref().is_err_and(is_lack_of_descriptors);
        if !*lacks_descriptor {
            return connected;
        }
        SHORTAGES.fetch_add(1, Ordering::Relaxed);
        sleep(PAUSE).await;
    }
}

/// A connection to this address. Where the server's accept queue is full, the kernel asks again only after a second: a
/// further try beside the first finds the next free place.
async fn tcp_stream(address: SocketAddr) -> io::Result<TcpStream> {
    let mut tries = vec![Box::pin(TcpStream::connect(address))];
    let mut pauses = FURTHER_TRIES.into_iter();
    loop {
        let mut first_of = poll_fn(|cx| {
            let mut polled = tries.iter_mut().map(|one| one.as_mut().poll(cx));
            polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
        });
        let Some(pause) = pauses.next() else { return first_of.await };
        match timeout(pause, &mut first_of).await {
            Ok(connected) => return connected,
            Err(_) => tries.push(Box::pin(TcpStream::connect(address))),
        }
    }
}

/// A connection to this socket. While its queue is full, this waits for a place in it: unlike with TCP, the kernel does not.
async fn unix_stream(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(PAUSE).await,
            connected => return connected,
        }
    }
}

/// How often a descriptor was missing. When this has changed, idle connections are closed to make room.
pub(super) fn descriptor_shortages() -> u64 {
    SHORTAGES.load(Ordering::Relaxed)
}

fn is_lack_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn prepare(stream: &TcpStream, response: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 4))?;
    // A server that vanished is noticed as soon as a silent server.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(response.max(KEEPALIVE)))?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = response;
    Ok(())
}

// How many connections to servers this process has, against the descriptors that it may open.

static COUNT: AtomicUsize = AtomicUsize::new(0);

static MOST: LazyLock<usize> = LazyLock::new(|| {
    let descriptors = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok());
    descriptors.map_or(usize::MAX, |descriptors| (descriptors / 2).saturating_sub(OTHERS))
});

/// Other descriptors of a process: its runtimes, listeners, files, connections to Redis.
const OTHERS: usize = 64;

/// Counts a connection until it is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(());

impl OpenConnection {
    pub(super) fn count() -> Self {
        COUNT.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether half of the descriptors are in use, so that no connection is kept idle: the other half is for clients.
    pub(super) fn are_too_many() -> bool {
        COUNT.load(Ordering::Relaxed) > *MOST
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}
