//! Listening sockets and client connections: accept, TLS, HTTP, timeouts, drain.

pub mod accept;
pub mod bind;
pub mod budget;
pub mod connection;
pub mod connections;
pub mod handler;
pub mod listener;
pub mod settings;
pub mod stop;
pub mod tls;

mod accepted_socket;
mod channel;
mod connection_supervisor;
mod connections_per_client;
mod date;
pub(crate) mod http1;
pub(crate) mod http2;
mod incoming;
mod incoming_body_error;
mod incoming_request;
mod interim;
mod panic;
mod progress;
mod protocol;
pub(crate) mod proxy_protocol;
mod recognize;
mod response;
mod session;
mod socket;
mod upgrade;
mod watchdog;

pub use self::accept::serve;
pub use self::bind::Stack;
pub use self::bind::adopt;
pub use self::bind::bind;
pub use self::budget::Budget;
pub use self::budget::BudgetShare;
pub use self::budget::SHARE_FREE;
pub use self::connection::Connection;
pub use self::connections::Connections;
pub use self::handler::Refusal;
pub use self::handler::RefusedHead;
pub use self::handler::RequestHandler;
pub use self::incoming::IncomingBody;
pub use self::incoming_body_error::IncomingBodyError;
pub use self::incoming_request::IncomingRequest;
pub use self::interim::InterimSender;
pub use self::listener::ListenerConfig;
pub use self::listener::ListenerRuntime;
pub use self::listener::ListenerSettings;
pub use self::listener::ListenerState;
pub use self::listener::ServesChange;
pub use self::response::Response;
pub use self::response::ResponseBody;
pub use self::settings::Settings;
pub use self::stop::AcceptStop;
pub use self::stop::AcceptStopper;
pub use self::tls::Tls;
pub use self::upgrade::NotUpgraded;
pub use self::upgrade::OnUpgrade;
pub use self::upgrade::Upgraded;

#[cfg(test)]
mod tests;
