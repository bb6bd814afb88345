//! An address for a server that is to start, or for nobody.

use std::iter;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// An address without a listener: it was free a moment ago.
pub fn unused_address() -> SocketAddr {
    let mut ports = iter::repeat_with(|| fastrand::u16(FIRST..FIRST_OF_CLIENTS)).take(1000);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    SocketAddr::from((Ipv4Addr::LOCALHOST, ports.find(is_free).expect("a free port")))
}

/// Services of the machine have lower ports.
const FIRST: u16 = 10_000;

/// Linux gives connections ports from here on, and keeps them for a minute. Tests make so many that a server which listens
/// on all addresses would seldom find one of these free.
const FIRST_OF_CLIENTS: u16 = 32_768;
