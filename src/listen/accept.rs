//! The accept loop of one core.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::select;
use tokio::time::Instant;
use tokio::time::sleep;
use tokio::time::timeout;
use tracing::error;
use tracing::info;
use tracing::warn;

use super::AcceptStop;
use super::ListenerState;
use super::RequestHandler;
use super::Settings;
use super::accepted_socket::AcceptedSocket;
use super::accepted_socket::log_foreign_asker;
use super::accepted_socket::log_without_proxy_header;
use super::proxy_protocol::ConnectionAddresses;
use crate::client::ClientIp;

/// Accepts connections on one core until `stop` asks it to end. Open connections go on until they are drained.
pub async fn serve<H: RequestHandler>(
    socket: std::net::TcpListener,
    state: Arc<ListenerState>,
    settings: Arc<ArcSwap<Settings>>,
    handler: H,
    stop: AcceptStop,
) {
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => return error!(%error, "cannot accept connections: the socket is unusable"),
    };
    let local = match listener.local_addr() {
        Ok(local) => local,
        Err(error) => return error!(%error, "cannot accept connections: the socket has no address"),
    };
    let accept_loop = AcceptLoop { local, state, settings, handler };
    accept_loop.run(&listener, &stop).await;
    if !stop.is_handover() {
        accept_loop.drain_queue(listener).await;
    }
}

struct AcceptLoop<H> {
    local: SocketAddr,
    state: Arc<ListenerState>,
    settings: Arc<ArcSwap<Settings>>,
    handler: H,
}

impl<H: RequestHandler> AcceptLoop<H> {
    /// Accepts until asked to stop. The stop does not interrupt the start of a connection that was accepted.
    async fn run(&self, listener: &TcpListener, stop: &AcceptStop) {
        let mut failure = AcceptFailure::default();
        loop {
            let accepted = select! {
                biased;
                () = stop.requested() => return,
                accepted = self.accept(listener) => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    failure.log_end(self.local);
                    self.start(stream, peer).await;
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    failure.log(self.local, &error);
                    select! {
                        () = stop.requested() => return,
                        () = sleep(RETRY_INTERVAL) => {}
                    }
                }
            }
        }
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        self.wait_for_room().await;
        listener.accept().await
    }

    /// Waits while the number of connections is at its bound. New ones wait in the accept queue.
    async fn wait_for_room(&self) {
        loop {
            let max = self.settings.load().max_connections;
            if timeout(RETRY_INTERVAL, self.state.connections().room(max)).await.is_ok() {
                return;
            }
        }
    }

    async fn start(&self, stream: TcpStream, peer: SocketAddr) {
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
            return log_foreign_asker(&self.state, peer, self.local);
        }
        let settings = self.settings.load_full();
        let permit = connections.admit(&settings).await;
        // With a wildcard address, only the connection knows which address the client connected to.
        let local = if self.local.ip().is_unspecified() { stream.local_addr().ok() } else { None };
        let addresses = ConnectionAddresses { source: peer, destination: local.unwrap_or(self.local) };
        let accepted = AcceptedSocket { stream, addresses, permit, askers, tls, settings };
        if is_trusted.is_some() {
            tokio::spawn(accepted.serve_behind_proxy(Arc::clone(&self.state), self.handler.clone()));
        } else if let Some(session) = accepted.serve(self.handler.clone()) {
            tokio::spawn(session);
        }
    }

    /// Accepts the connections in the accept queue, because closing the socket would reset them.
    async fn drain_queue(&self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else { return };
        while let Ok((stream, peer)) = listener.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                // Without waiting for room: the gateway is stopping.
                let _ = timeout(Duration::ZERO, self.start(stream, peer)).await;
            }
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
    fn log(&mut self, local: SocketAddr, error: &io::Error) {
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            self.logged = Some(Instant::now());
            self.is_open = true;
            warn!(%local, %error, "cannot accept connections, retrying");
        }
    }

    fn log_end(&mut self, local: SocketAddr) {
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

/// How often to look for free descriptors and for a bound that was raised.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Between two log lines about the same failure.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
