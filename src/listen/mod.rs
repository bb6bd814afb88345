//! Where requests come in: listening sockets, connections, their timeouts.

pub mod connection;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::Request;
use http::Response;
use http_body::Body;
use hyper::body::Incoming;

pub use self::connection::Connection;

/// Bounds of connections; those that stand keep what they began with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// From the first byte of a head, or the start of a connection, to the end of the head.
    pub header: Duration,
    /// Between two requests.
    pub keepalive: Duration,
    /// Reading or writing a body without progress.
    pub body_idle: Duration,
    /// How long requests under way may take once the gateway is stopping.
    pub drain: Duration,
    pub max_header_bytes: usize,
    pub max_headers: usize,
    /// Zero: as many as descriptors allow.
    pub max_connections: usize,
    /// Zero: no bound.
    pub max_connections_per_client: usize,
}

/// What answers requests.
pub trait Handle: Clone + Send + 'static {
    type Body: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static;

    /// Answers one request. The future is dropped when the client goes away.
    fn handle(
        &self,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>> + Send + 'static;
}

/// Opens `count` sockets on one address, each with an accept queue of its own. Fails when anyone else listens there.
/// Port 0 is one free port for all of them.
pub fn bind(_address: SocketAddr, _count: usize) -> std::io::Result<Vec<std::net::TcpListener>> {
    todo!()
}

/// Accepts connections on one core until `stop` is cancelled; those that stand finish what they are at.
pub async fn serve<H: Handle>(
    _socket: std::net::TcpListener,
    _settings: Arc<ArcSwap<Settings>>,
    _handler: H,
    _connections: connection::Connections,
    _stop: tokio_util::sync::CancellationToken,
) {
    todo!()
}
