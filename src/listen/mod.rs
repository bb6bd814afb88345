//! Listening sockets and client connections: accept, TLS, HTTP, timeouts, drain.

pub mod accept;
pub mod bind;
mod client_stream;
pub mod connection;
pub mod connections;
pub mod handler;
pub(crate) mod http1;
pub(crate) mod http2;
pub mod listener;
pub(crate) mod proxy_protocol;
mod session;
pub mod tls;
mod upgrade;
mod watchdog;

pub use self::accept::{AcceptStop, AcceptStopper, serve};
pub use self::bind::{ListenAddress, ListeningSocket, SocketFile, Stack, adopt, bind, bind_unix, set_mode};
pub use self::connection::Connection;
pub use self::connections::Connections;
pub use self::handler::{
    Budget, BudgetShare, IncomingBody, IncomingBodyError, IncomingRequest, InterimSender, Refusal, RefusedHead,
    RequestHandler, Response, ResponseBody, SHARE_FREE,
};
pub use self::listener::{
    ConnectionSettings, ListenerConfig, ListenerRuntime, ListenerSettings, ListenerState, ServesChange,
};
pub use self::tls::Tls;
pub use self::upgrade::{NotUpgraded, OnUpgrade, Upgraded};

#[cfg(test)]
mod tests;
