//! HTTP/1.1 in bytes (RFC 9112), without sockets: input is an argument, output goes into a [`grammar::WriteBuffer`].
//!
//! `server` is strict with the requests of clients. `client` tolerates old habits in the response heads of applications,
//! which `repair` mends.
//! The connections themselves are in `listen/http1` and `upstream/http1`.

pub mod client;
pub mod grammar;
pub mod repair;
pub mod server;
