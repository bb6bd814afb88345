//! How one server is spoken to.
//!
//! - [`url`]: where it is, and who the gateway is to it.
//! - [`connect`]: a connection, with TLS and a login; [`pipeline`] and [`reply`]: shared by all callers of a core.
//! - [`breaker`], [`fault`]: why it does not answer, and that it is not asked meanwhile.

pub mod url;

pub(super) mod breaker;
pub(super) mod connect;
pub(super) mod fault;

mod pipeline;
pub(crate) mod reply;
