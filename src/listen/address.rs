//! Where a listener accepts connections.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

/// Where a listener accepts connections. Written as in the configuration: `0.0.0.0:8080`, `unix:/run/portcullis.sock`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ListenAddress {
    Ip(SocketAddr),
    /// The path of a Unix socket.
    UnixSocket(Arc<str>),
}

impl ListenAddress {
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::UnixSocket(_) => None,
        }
    }

    /// Whether each listener there gets a free port of its own.
    pub fn is_any_port(&self) -> bool {
        self.ip().is_some_and(|address| address.port() == 0)
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::UnixSocket(path) => write!(f, "{UNIX_SOCKET}{path}"),
        }
    }
}

/// It is neither an address with a port nor the path of a Unix socket.
#[derive(Debug, thiserror::Error)]
#[error("not an address to listen on")]
pub struct InvalidListenAddress;

impl FromStr for ListenAddress {
    type Err = InvalidListenAddress;

    fn from_str(text: &str) -> Result<Self, InvalidListenAddress> {
        match text.strip_prefix(UNIX_SOCKET) {
            Some(path) => Ok(Self::UnixSocket(path.into())),
            None => text.parse().map(Self::Ip).map_err(|_| InvalidListenAddress),
        }
    }
}

/// What stands before the path of a Unix socket.
pub const UNIX_SOCKET: &str = "unix:";
