//! The admin listener: health and metrics.

use std::net::SocketAddr;

/// The `admin` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub address: SocketAddr,
}
