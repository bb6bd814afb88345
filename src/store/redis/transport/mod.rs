//! Connections to one server.
//!
//! - [`url`]: the address of a server, and the login of the gateway.
//! - [`connect`]: opens a [`connection`], with TLS and a login; [`pipeline`] and [`reply`]: shared by all callers of a core.
//! - [`replicas`], [`replica_waits`]: waits until replicas have what was written on a connection.
//! - [`breaker`], [`fault`]: why a server is down, and the circuit breaker that stops calls to it.

pub mod url;

pub(super) mod breaker;
pub(super) mod connect;
pub(super) mod connection;
pub(super) mod fault;
pub(super) mod replicas;

mod pipeline;
mod replica_waits;
pub(crate) mod reply;
