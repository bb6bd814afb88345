//! The accept loop of one core.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::select;
use tokio::time::sleep;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::error;
use tracing::info;
use tracing::warn;

use super::Connection;
use super::Connections;
use super::Handle;
use super::Settings;
use super::conversation::converse;
use super::tapped::Tapped;

/// Accepts connections on one core until `stop` is cancelled; those that stand go on until they are drained.
pub async fn serve<H: Handle>(
    socket: std::net::TcpListener,
    settings: Arc<ArcSwap<Settings>>,
    handler: H,
    connections: Connections,
    stop: CancellationToken,
) {
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => return error!(%error, "cannot accept connections: the socket is unusable"),
    };
    let local = match listener.local_addr() {
        Ok(local) => local,
        Err(error) => return error!(%error, "cannot accept connections: the socket has no address"),
    };
    let accepting = Accepting { local, settings, handler, connections };
    select! {
        () = stop.cancelled() => accepting.finish(listener).await,
        never = accepting.run(&listener) => match never {},
    }
}

struct Accepting<H> {
    local: SocketAddr,
    settings: Arc<ArcSwap<Settings>>,
    handler: H,
    connections: Connections,
}

impl<H: Handle> Accepting<H> {
    async fn run(&self, listener: &TcpListener) -> Infallible {
        let mut failing = false;
        loop {
            self.room().await;
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if failing {
                        failing = false;
                        info!(local = %self.local, "accepting connections again");
                    }
                    self.welcome(stream, peer).await;
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    if !failing {
                        failing = true;
                        warn!(local = %self.local, %error, "cannot accept connections, trying on");
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Waits, while there are as many connections as there may be; new ones wait in the accept queue.
    async fn room(&self) {
        loop {
            let most = self.settings.load().max_connections;
            if most == 0 || timeout(PAUSE, self.connections.room(most)).await.is_ok() {
                return;
            }
        }
    }

    async fn welcome(&self, stream: TcpStream, peer: SocketAddr) {
        let settings = self.settings.load_full();
        let Some(standing) = self.connections.admit(peer.ip(), &settings).await else {
            // It has all the connections it may have.
            return;
        };
        // Only a wildcard leaves open which of its addresses a client came to.
        let local = if self.local.ip().is_unspecified() { stream.local_addr().ok() } else { None };
        let local = local.unwrap_or(self.local);
        let connection = Arc::new(Connection::new(peer, local, settings.max_headers, &self.connections));
        let io = Tapped::new(stream, Arc::clone(&connection), standing);
        tokio::spawn(converse(io, connection, settings, self.handler.clone()));
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
