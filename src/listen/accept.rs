//! The accept loop of one core.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, mem};

use arc_swap::ArcSwap;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::select;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{error, info, warn};

use super::client_stream::ClientStream;
use super::proxy_protocol::ConnectionAddresses;
use super::{ConnectionSettings, ListenAddress, ListenerState, ListeningSocket, RequestHandler};
use crate::listen::session::{AcceptedSocket, log_foreign_asker, log_without_proxy_header};
use crate::rules::client::ClientIp;

/// Both ends of connections over Unix sockets: they have no addresses, and their clients are on this machine.
const THIS_MACHINE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How often to look for free descriptors and for a bound that was raised.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Between two log lines about the same failure.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Accepts connections on one core until `stop` asks it to end. Open connections go on until they are drained.
pub async fn serve<H: RequestHandler>(
    socket: ListeningSocket,
    address: ListenAddress,
    state: Arc<ListenerState>,
    settings: Arc<ArcSwap<ConnectionSettings>>,
    handler: H,
    stop: AcceptStop,
) {
    let listener = match Listener::new(socket) {
        Ok(listener) => listener,
        Err(error) => return error!(%error, "cannot accept connections: the socket is unusable"),
    };
    let accept_loop = AcceptLoop { address, state, settings, handler };
    accept_loop.run(&listener, &stop).await;
    if !stop.is_handover() {
        accept_loop.drain_queue(listener).await;
    }
}

/// A socket that one core accepts connections from.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn new(socket: ListeningSocket) -> io::Result<Self> {
        match socket {
            ListeningSocket::Tcp(socket) => TcpListener::from_std(socket).map(Self::Tcp),
            ListeningSocket::Unix(socket) => UnixListener::from_std(socket).map(Self::Unix),
        }
    }

    /// The next connection, and its peer.
    async fn accept(&self) -> io::Result<(ClientStream, SocketAddr)> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, peer)| (ClientStream::Tcp(stream), peer)),
            Self::Unix(listener) => {
                listener.accept().await.map(|(stream, _)| (ClientStream::Unix(stream), THIS_MACHINE))
            }
        }
    }

    /// The connections in the accept queue, at once.
    fn drain(self) -> io::Result<Vec<(ClientStream, SocketAddr)>> {
        let mut waiting = Vec::new();
        match self {
            Self::Tcp(listener) => {
                let listener = listener.into_std()?;
                while let Ok((stream, peer)) = listener.accept() {
                    let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                    waiting.extend(stream.map(|stream| (ClientStream::Tcp(stream), peer)));
                }
            }
            Self::Unix(listener) => {
                let listener = listener.into_std()?;
                while let Ok((stream, _)) = listener.accept() {
                    let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
                    waiting.extend(stream.map(|stream| (ClientStream::Unix(stream), THIS_MACHINE)));
                }
            }
        }
        Ok(waiting)
    }
}

struct AcceptLoop<H> {
    address: ListenAddress,
    state: Arc<ListenerState>,
    settings: Arc<ArcSwap<ConnectionSettings>>,
    handler: H,
}

impl<H: RequestHandler> AcceptLoop<H> {
    /// Accepts until asked to stop. The stop does not interrupt the start of a connection that was accepted.
    async fn run(&self, listener: &Listener, stop: &AcceptStop) {
        let mut failure = AcceptFailure::default();
        loop {
            let accepted = select! {
                biased;
                () = stop.requested() => return,
                accepted = self.accept(listener) => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    failure.log_end(&self.address);
                    self.start(stream, peer).await;
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    failure.log(&self.address, &error);
                    self.state.connections().note_shortage(&error.to_string());
                    select! {
                        () = stop.requested() => return,
                        () = sleep(RETRY_INTERVAL) => {}
                    }
                }
            }
        }
    }

    async fn accept(&self, listener: &Listener) -> io::Result<(ClientStream, SocketAddr)> {
        self.wait_for_room().await;
        listener.accept().await
    }

    /// Waits while the number of connections is at its bound. New ones wait in the accept queue.
    async fn wait_for_room(&self) {
        loop {
            let max = self.settings.load().max_connections;
            let connections = self.state.connections();
            if timeout(RETRY_INTERVAL, connections.room(max)).await.is_ok() {
                return;
            }
            connections.note_shortage("as many are open as `server.max_connections` or the descriptors allow");
        }
    }

    async fn start(&self, stream: ClientStream, peer: SocketAddr) {
        let (is_trusted, askers, tls, connections) = {
            let runtime = self.state.runtime();
            let is_trusted = runtime.proxy_protocol.as_ref().map(|proxies| proxies.trusts(ClientIp::new(peer.ip())));
            (is_trusted, runtime.askers.clone(), runtime.tls.clone(), runtime.connections.clone())
        };
        if is_trusted == Some(false) {
            connections.count_rejected();
            return log_without_proxy_header(&self.state, peer, &"the peer is not in `client_ip.trusted_proxies`");
        }
        if askers.as_ref().is_some_and(|askers| !askers.contains(ClientIp::new(peer.ip()))) {
            connections.count_rejected();
            return log_foreign_asker(&self.state, peer, &self.address);
        }
        let settings = self.settings.load_full();
        let permit = connections.admit(&settings).await;
        // With a wildcard address, only the connection knows which address the client connected to.
        let destination = match (&self.address, &stream) {
            (ListenAddress::Ip(address), ClientStream::Tcp(stream)) if address.ip().is_unspecified() => {
                stream.local_addr().unwrap_or(*address)
            }
            (ListenAddress::Ip(address), _) => *address,
            (ListenAddress::UnixSocket(_), _) => THIS_MACHINE,
        };
        let addresses = ConnectionAddresses { source: peer, destination };
        let accepted = AcceptedSocket { stream, addresses, permit, askers, tls, settings };
        if is_trusted.is_some() {
            tokio::spawn(accepted.serve_behind_proxy(Arc::clone(&self.state), self.handler.clone()));
        } else if let Some(session) = accepted.serve(self.handler.clone()) {
            tokio::spawn(session);
        }
    }

    /// Accepts the connections in the accept queue, because closing the socket would reset them.
    async fn drain_queue(&self, listener: Listener) {
        for (stream, peer) in listener.drain().unwrap_or_default() {
            // Without waiting for room: the gateway is stopping.
            let _ = timeout(Duration::ZERO, self.start(stream, peer)).await;
        }
    }
}

/// A failure to accept connections. It may come and go with each descriptor that is freed and taken, so it is logged at
/// intervals.
#[derive(Debug, Default)]
struct AcceptFailure {
    logged: Option<Instant>,
    /// Its end must be logged.
    is_open: bool,
}

impl AcceptFailure {
    fn log(&mut self, local: &ListenAddress, error: &io::Error) {
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            self.logged = Some(Instant::now());
            self.is_open = true;
            warn!(%local, %error, "cannot accept connections, retrying");
        }
    }

    fn log_end(&mut self, local: &ListenAddress) {
        if mem::take(&mut self.is_open) {
            info!(%local, "accepting connections again");
        }
    }
}

/// Whether the error is about one connection, and the next one may be accepted at once.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

// Stops accept loops, either for good or because another process takes the sockets over.

/// Stops the accept loops that hold an [`AcceptStop`] of it.
#[derive(Debug, Default)]
pub struct AcceptStopper {
    requested: CancellationToken,
    is_handover: Arc<AtomicBool>,
    accepting: TaskTracker,
}

/// The stop signal of one accept loop, held until the loop ends.
#[derive(Clone, Debug)]
pub struct AcceptStop {
    requested: CancellationToken,
    is_handover: Arc<AtomicBool>,
    _accepting: TaskTrackerToken,
}

impl AcceptStopper {
    pub fn stop(&self) -> AcceptStop {
        AcceptStop {
            requested: self.requested.clone(),
            is_handover: Arc::clone(&self.is_handover),
            _accepting: self.accepting.token(),
        }
    }

    /// Stops for good. Connections in an accept queue are accepted first, because closing the socket would reset them.
    pub fn close(&self) {
        self.requested.cancel();
    }

    /// Stops at once. Connections in an accept queue are left to another process that has the same sockets.
    pub fn hand_over(&self) {
        self.is_handover.store(true, Ordering::Release);
        self.requested.cancel();
    }

    /// Returns when every loop has ended and its socket is closed.
    pub async fn ended(&self) {
        self.accepting.close();
        self.accepting.wait().await;
    }
}

impl AcceptStop {
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }

    pub(super) fn is_handover(&self) -> bool {
        self.is_handover.load(Ordering::Acquire)
    }
}
