//! Connections to one server.
//!
//! - [`url`]: the address of a server, and the login of the gateway.
//! - [`connect`]: opens a [`connection`], with TLS and a login; [`pipeline`] and [`reply`]: shared by all callers of a core.
//! - [`breaker`], [`fault`]: why a server is down, and the circuit breaker that stops calls to it.

pub mod url;

pub(super) mod breaker;
pub(super) mod connect;
pub(super) mod connection;
pub(super) mod fault;

mod pipeline;
pub(crate) mod reply;
