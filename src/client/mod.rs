//! Who asks: the address that limits and lists are applied to.

pub mod forwarded;
pub mod prefix;

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

pub use self::forwarded::ForwardingHeader;
pub use self::prefix::Prefix;

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

/// Which peers may say on whose behalf they ask, and in which header.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    header: ForwardingHeader,
}

/// What is known about the two ends of a request's way to us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity {
    /// Who connected.
    pub peer: ClientIp,
    /// Whether the peer's forwarding headers were believed.
    pub peer_is_trusted: bool,
    /// Who asks: the peer, or whom the trusted proxies speak for.
    pub client: ClientIp,
}

impl TrustedProxies {
    pub fn new(_networks: Vec<IpNet>, _header: ForwardingHeader) -> Self {
        todo!()
    }

    pub fn trusts(&self, _address: ClientIp) -> bool {
        todo!()
    }

    /// The peer is judged before the header: anyone may write a header.
    pub fn identify(&self, _peer: IpAddr, _headers: &HeaderMap) -> Identity {
        todo!()
    }
}
