//! An address in its canonical spelling.

use std::net::IpAddr;

/// An address in its one canonical spelling: an IPv4-mapped IPv6 address is the IPv4 address.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClientIp(IpAddr);

impl ClientIp {
    pub fn new(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }

    pub fn address(self) -> IpAddr {
        self.0
    }
}
