//! Where requests come in: listening sockets, connections, their timeouts.

pub mod accept;
pub mod bind;
pub mod budget;
pub mod connection;
pub mod connections;
pub mod listener;
pub mod stop;
pub mod tls;

mod accepted_socket;
mod channel;
mod connection_supervisor;
mod conversation;
mod date;
pub(crate) mod http1;
pub(crate) mod http2;
mod incoming;
mod interim;
mod per_client;
pub(crate) mod proxy_protocol;
mod recognize;
mod socket;
mod target;
mod upgrade;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::Uri;
use http_body::Body;

pub use self::accept::serve;
pub use self::bind::Stack;
pub use self::bind::adopt;
pub use self::bind::bind;
pub use self::budget::Budget;
pub use self::budget::BudgetShare;
pub use self::budget::SHARE_FREE;
pub use self::connection::Connection;
pub use self::connections::Connections;
pub use self::incoming::IncomingBody;
pub use self::incoming::IncomingBodyError;
pub use self::interim::InterimSender;
pub use self::listener::ListenerConfig;
pub use self::listener::ListenerRuntime;
pub use self::listener::ListenerSettings;
pub use self::listener::ListenerState;
pub use self::stop::AcceptStop;
pub use self::stop::AcceptStopper;
pub use self::tls::Tls;
pub use self::upgrade::NotUpgraded;
pub use self::upgrade::OnUpgrade;
pub use self::upgrade::Upgraded;

/// Bounds of connections; those that stand keep what they began with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// From the first byte of a head, or the start of a connection, to the end of the head.
    pub header: Duration,
    /// Between two requests.
    pub keepalive: Duration,
    /// Reading or writing a body without progress.
    pub body_idle: Duration,
    /// The least bytes per second that a client takes of what waits for it, over each `body_idle` after the first; zero:
    /// any.
    pub body_rate: u32,
    /// How long requests under way may take once the gateway is stopping.
    pub drain: Duration,
    /// Before that: how long everything goes on as before, but for being ready.
    pub lame_duck: Duration,
    pub max_header_bytes: usize,
    pub max_headers: usize,
    /// Zero: as many as descriptors allow.
    pub max_connections: usize,
    /// Zero: no bound.
    pub max_connections_per_client: usize,
}

/// What answers requests.
pub trait Handle: Clone + Send + Sync + 'static {
    type Body: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static;

    /// Answers one request. The future is dropped when the client goes away. A client that waits to be asked for its body
    /// is asked over `interim`.
    ///
    /// Reading the request's body without progress is bounded here; everything else of a connection is
    /// bounded by its [`Settings`].
    fn handle(
        &self,
        connection: Arc<Connection>,
        request: Request<IncomingBody>,
        interim: InterimSender,
    ) -> impl Future<Output = Response<Self::Body>> + Send + 'static;

    /// Learns of a head that was no request, and was answered. Over HTTP/1 its connection is closed.
    fn refused(&self, _connection: &Connection, _refused: Refused) {}
}

/// A head that was no request.
#[derive(Clone, Debug)]
pub struct Refused {
    pub status: StatusCode,
    /// What of it could be read all the same.
    pub method: Option<Method>,
    pub target: Option<Uri>,
    pub host: Option<HeaderValue>,
}

impl Refused {
    /// Nothing of it was read.
    fn unread(status: StatusCode) -> Self {
        Self { status, method: None, target: None, host: None }
    }
}

#[cfg(test)]
mod tests;
