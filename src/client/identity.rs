//! Who asks: the peer, or the client that trusted proxies name.

use std::net::IpAddr;

use ipnet::IpNet;
use ipnet::Ipv4Net;

use super::ClientIp;
use super::ForwardingHeader;
use crate::head::FieldName;
use crate::head::Fields;

/// The peers whose forwarding header is trusted, and which header that is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    header: ForwardingHeader,
}

/// The peer of a connection, and the client of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The other end of the connection.
    pub peer: ClientIp,
    /// Whether the forwarding header of the peer was trusted.
    pub peer_is_trusted: bool,
    /// The peer, or the client that trusted proxies name.
    pub client: ClientIp,
}

impl TrustedProxies {
    /// Networks of IPv4-mapped addresses become IPv4 networks.
    pub fn new(networks: Vec<IpNet>, header: ForwardingHeader) -> Self {
        Self { networks: networks.into_iter().map(folded).collect(), header }
    }

    pub fn trusts(&self, address: ClientIp) -> bool {
        self.networks.iter().any(|network| network.contains(&address.address()))
    }

    /// The configured header for one address, if it is of that kind.
    pub fn single_header(&self) -> Option<&FieldName> {
        match &self.header {
            ForwardingHeader::Single(name) => Some(name),
            ForwardingHeader::XForwardedFor | ForwardingHeader::Forwarded => None,
        }
    }

    /// Checks the peer before the header, because any peer can write a header.
    ///
    /// Then walks the list from the right, where the nearest proxy wrote, while the address is that of a trusted proxy.
    /// An entry without an address ends the walk at the last good one.
    pub fn identify(&self, peer: IpAddr, fields: &Fields) -> Identity {
        let peer = ClientIp::new(peer);
        let peer_is_trusted = self.trusts(peer);
        let mut client = peer;
        if peer_is_trusted {
            for entry in self.header.entries_from_the_right(fields).take(MAX_HOPS) {
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

/// No request passes more proxies than this.
const MAX_HOPS: usize = 64;

#[cfg(test)]
mod tests;
