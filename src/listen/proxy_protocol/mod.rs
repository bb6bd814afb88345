//! The PROXY protocol: a trusted proxy first sends the addresses of the connection that it forwards. The bytes behind
//! its header stay in the socket.

pub(crate) mod header;

mod read;

pub(super) use self::header::ConnectionAddresses;
pub(super) use self::read::read_proxy_header;
