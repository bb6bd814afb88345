//! Connections to one server.
//!
//! - [`connect`]: the address of a server and the login of the gateway; opens a [`connection`], with TLS.
//! - [`pipeline`] and [`reply`]: shared by all callers of a core.
//! - [`fault`]: why a server is down, and the circuit breaker that stops calls to it.

pub mod connect;
pub(super) mod connection;
pub(super) mod fault;
mod pipeline;
pub(crate) mod reply;
