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
use super::Connections;
use super::Handle;
use super::ListenerState;
use super::Settings;
use super::accepted_socket::AcceptedSocket;
use super::accepted_socket::turn_away;
use super::proxy_protocol::Ends;
use crate::client::ClientIp;

/// Accepts connections on one core until told to stop; those that stand go on until they are drained.
pub async fn serve<H: Handle>(
    socket: std::net::TcpListener,
    state: Arc<ListenerState>,
    settings: Arc<ArcSwap<Settings>>,
    handler: H,
    connections: Connections,
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
    let accepting = Accepting { local, state, settings, handler, connections };
    accepting.run(&listener, &stop).await;
    if !stop.leaves() {
        accepting.finish(listener).await;
    }
}

struct Accepting<H> {
    local: SocketAddr,
    state: Arc<ListenerState>,
    settings: Arc<ArcSwap<Settings>>,
    handler: H,
    connections: Connections,
}

impl<H: Handle> Accepting<H> {
    /// Who was accepted is welcomed, whatever is said meanwhile.
    async fn run(&self, listener: &TcpListener, stop: &AcceptStop) {
        let mut trouble = AcceptFailure::default();
        loop {
            let accepted = select! {
                biased;
                () = stop.told() => return,
                accepted = self.accept(listener) => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    trouble.ends(self.local);
                    self.welcome(stream, peer).await;
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    trouble.lasts(self.local, &error);
                    select! {
                        () = stop.told() => return,
                        () = sleep(PAUSE) => {}
                    }
                }
            }
        }
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        self.room().await;
        listener.accept().await
    }

    /// Waits, while there are as many connections as there may be; new ones wait in the accept queue.
    async fn room(&self) {
        loop {
            let most = self.settings.load().max_connections;
            if timeout(PAUSE, self.connections.room(most)).await.is_ok() {
                return;
            }
        }
    }

    async fn welcome(&self, stream: TcpStream, peer: SocketAddr) {
        let (is_trusted, tls) = {
            let asked = self.state.runtime();
            let is_trusted = asked.proxy_protocol.as_ref().map(|proxies| proxies.trusts(ClientIp::new(peer.ip())));
            (is_trusted, asked.tls.clone())
        };
        if is_trusted == Some(false) {
            return turn_away(&self.state, peer, &"the peer is not in `client_ip.trusted_proxies`");
        }
        let settings = self.settings.load_full();
        let permit = self.connections.admit(&settings).await;
        // Only a wildcard leaves open which of its addresses a client came to.
        let local = if self.local.ip().is_unspecified() { stream.local_addr().ok() } else { None };
        let ends = Ends { source: peer, destination: local.unwrap_or(self.local) };
        let accepted = AcceptedSocket { stream, ends, permit, tls, settings };
        if is_trusted.is_some() {
            tokio::spawn(accepted.read_proxy_header(Arc::clone(&self.state), self.handler.clone()));
        } else if let Some(conversation) = accepted.converse(self.handler.clone()) {
            tokio::spawn(conversation);
        }
    }

    /// Takes in who is waiting in the accept queue: closing it would reset them.
    async fn finish(&self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else { return };
        while let Ok((stream, peer)) = listener.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                // Nobody waits for room now.
                let _ = timeout(Duration::ZERO, self.welcome(stream, peer)).await;
            }
        }
    }
}

/// That connections cannot be accepted. It may come and go with each descriptor that is freed and taken: an operator is
/// told now and then.
#[derive(Debug, Default)]
struct AcceptFailure {
    told: Option<Instant>,
    /// That it has ended is to be said.
    is_known: bool,
}

impl AcceptFailure {
    fn lasts(&mut self, local: SocketAddr, error: &io::Error) {
        if self.told.is_none_or(|told| told.elapsed() >= TELLING) {
            self.told = Some(Instant::now());
            self.is_known = true;
            warn!(%local, %error, "cannot accept connections, trying on");
        }
    }

    fn ends(&mut self, local: SocketAddr) {
        if mem::take(&mut self.is_known) {
            info!(%local, "accepting connections again");
        }
    }
}

/// Whether the client is at fault, and the next one may fare better at once.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Between two looks at what does not announce itself: descriptors that came free, a bound that was raised.
const PAUSE: Duration = Duration::from_millis(100);

/// Between two words about the same trouble.
const TELLING: Duration = Duration::from_secs(10);
