//! The applications behind the gateway: their servers, which of them gets a request, and the connections kept to them.

pub mod address;
pub mod background_tasks;
pub mod error;
pub mod pool;
pub mod replay;
pub mod response;
pub mod server;
pub mod servers;
pub mod settings;
pub mod tls;

mod attempts;
mod balance;
mod connect;
mod health;
pub(crate) mod http1;
mod http2;
mod idle;
mod informational;
mod open_connection;
mod outgoing;
mod own_connections;
mod protocol;
mod resolve;
mod send;
mod stream;
mod tunnel;

pub use self::error::BodyError;
pub use self::error::ForwardError;
pub use self::error::PreviousAttempts;
pub use self::outgoing::OutgoingRequest;
pub use self::own_connections::Client;
pub use self::own_connections::OwnConnections;
pub use self::pool::Pool;
pub use self::replay::ReplayBody;
pub use self::response::UpstreamBody;
pub use self::response::UpstreamResponse;
pub use self::server::Server;
pub use self::servers::Upstream;
pub use self::settings::Balance;
pub use self::settings::HeadBounds;
pub use self::settings::HealthCheck;
pub use self::settings::HostHeader;
pub use self::settings::Location;
pub use self::settings::ServerUrl;
pub use self::settings::Settings;
pub use self::settings::Timeouts;
pub use self::settings::UNIX_SOCKET;
pub use self::tls::ServerVerification;
pub use self::tunnel::Tunnel;

#[cfg(test)]
mod tests;
