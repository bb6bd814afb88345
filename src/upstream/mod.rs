//! The applications behind the gateway: their servers, which of them gets a request, and the connections kept to them.

mod connect;
pub mod error;
pub(crate) mod http1;
mod http2;
pub mod pool;
pub mod resolve;
pub mod response;
pub mod send;
pub mod server;
pub mod servers;
pub mod stream;

pub use self::error::{BodyError, ForwardError, PreviousAttempts};
pub use self::pool::{Client, OwnConnections, Pool};
pub use self::response::{Tunnel, UpstreamBody, UpstreamResponse};
pub use self::send::{OutgoingRequest, ReplayBody};
pub use self::server::Server;
pub use self::servers::{
    Balance, HeadBounds, HealthCheck, HostHeader, Location, ServerUrl, Timeouts, UNIX_SOCKET, Upstream,
    UpstreamSettings,
};
pub use self::stream::ServerVerification;

#[cfg(test)]
mod tests;
