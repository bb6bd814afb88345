//! The accept loop of one core.

use std::io;
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
    select! {
        () = stop.cancelled() => {}
        never = accept(&listener, &settings, &handler, &connections) => match never {},
    }
}

async fn accept<H: Handle>(
    listener: &TcpListener,
    settings: &ArcSwap<Settings>,
    handler: &H,
    connections: &Connections,
) -> std::convert::Infallible {
    let mut failing = false;
    loop {
        room(settings, connections).await;
        match listener.accept().await {
            Ok((stream, peer)) => {
                if failing {
                    failing = false;
                    info!("accepting connections again");
                }
                let local = listener.local_addr().unwrap_or(peer);
                let connection = Arc::new(Connection::new(peer, local, connections));
                welcome(stream, connection, settings.load_full(), handler, connections).await;
            }
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                if !failing {
                    failing = true;
                    warn!(%error, "cannot accept connections, trying on");
                }
                sleep(PAUSE).await;
            }
        }
    }
}

/// Waits, while there are as many connections as there may be; new ones wait in the accept queue.
async fn room(settings: &ArcSwap<Settings>, connections: &Connections) {
    loop {
        let most = settings.load().max_connections;
        if most == 0 || timeout(PAUSE, connections.room(most)).await.is_ok() {
            return;
        }
    }
}

async fn welcome<H: Handle>(
    stream: TcpStream,
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    handler: &H,
    connections: &Connections,
) {
    let Some(standing) = connections.admit(connection.peer.ip(), &settings).await else {
        return;
    };
    let io = Tapped::new(stream, Arc::clone(&connection), standing);
    tokio::spawn(converse(io, connection, settings, handler.clone()));
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
