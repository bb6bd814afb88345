//! Who asks: the peer, or the client that trusted proxies name.

use std::net::IpAddr;

use http::HeaderMap;
use http::HeaderName;
use ipnet::IpNet;
use ipnet::Ipv4Net;

use super::ClientIp;
use super::ForwardingHeader;

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
    /// Networks of IPv4-mapped addresses are the IPv4 networks they stand for.
    pub fn new(networks: Vec<IpNet>, header: ForwardingHeader) -> Self {
        Self { networks: networks.into_iter().map(folded).collect(), header }
    }

    pub fn trusts(&self, address: ClientIp) -> bool {
        self.networks.iter().any(|network| network.contains(&address.address()))
    }

    /// The header that holds one address, where such a one is configured.
    pub fn single_header(&self) -> Option<&HeaderName> {
        match &self.header {
            ForwardingHeader::Single(name) => Some(name),
            ForwardingHeader::XForwardedFor | ForwardingHeader::Forwarded => None,
        }
    }

    /// The peer is judged before the header: anyone may write a header.
    ///
    /// From there the list is walked from the right, where the nearest proxy wrote, for as long as the address
    /// reached is a trusted proxy's. An entry that is no address ends the walk at the last good one.
    pub fn identify(&self, peer: IpAddr, headers: &HeaderMap) -> Identity {
        let peer = ClientIp::new(peer);
        let peer_is_trusted = self.trusts(peer);
        let mut client = peer;
        if peer_is_trusted {
            for entry in self.header.entries_from_the_right(headers).take(MAX_HOPS) {
                let Some(address) = entry else { break };
                client = ClientIp::new(address);
                if !self.trusts(client) {
                    break;
                }
            }
        }
        Identity { peer, peer_is_trusted, client }
    }
}

fn folded(network: IpNet) -> IpNet {
    let network = network.trunc();
    if let IpNet::V6(v6) = network
        && let Some(prefix) = v6.prefix_len().checked_sub(96)
        && let Some(address) = v6.addr().to_ipv4_mapped()
        && let Ok(v4) = Ipv4Net::new(address, prefix)
    {
        return v4.into();
    }
    network
}

/// More proxies than this in a row are no path that a request takes.
const MAX_HOPS: usize = 64;

#[cfg(test)]
mod tests;
