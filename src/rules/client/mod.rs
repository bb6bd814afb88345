//! Identifies the client: the address and the device that limits and lists are applied to.

pub mod address;
pub mod device;
pub mod forwarded;

use std::net::IpAddr;

use ipnet::IpNet;

pub use self::address::{ClientIp, Networks, Prefix};
pub use self::device::DeviceId;
pub use self::forwarded::ForwardingHeader;
use crate::wire::head::{FieldName, Fields};

// The address of the client: the peer, or the address that trusted proxies name.

/// No request passes more proxies than this.
const MAX_HOPS: usize = 64;

/// The peers whose forwarding header is trusted, and which header that is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrustedProxies {
    networks: Networks,
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
        Self { networks: Networks::new(networks), header }
    }

    pub fn trusts(&self, address: ClientIp) -> bool {
        self.networks.contains(address)
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
    /// Then walks the list from the right, where the nearest proxy wrote, as long as the address belongs to a trusted
    /// proxy. An entry without an address ends the walk at the last good one.
    pub fn identify(&self, peer: IpAddr, fields: &Fields) -> Identity {
        let peer = ClientIp::new(peer);
        let peer_is_trusted = self.trusts(peer);
        let client = if peer_is_trusted { walk(&self.header, peer, fields, |hop| self.trusts(hop)) } else { peer };
        Identity { peer, peer_is_trusted, client }
    }

    /// The client of the request that `asker` describes with these fields. `asker` is one of `askers`, which are
    /// trusted like proxies in front of this one: each writes the client of its own connection into `X-Forwarded-For`.
    pub fn identify_asked(&self, asker: IpAddr, askers: &Networks, fields: &Fields) -> Identity {
        let peer = ClientIp::new(asker);
        let is_proxy = |hop| askers.contains(hop) || self.trusts(hop);
        let client = walk(&ForwardingHeader::XForwardedFor, peer, fields, is_proxy);
        Identity { peer, peer_is_trusted: true, client }
    }

    /// The client of the request that `asker` shows with these fields. `source` is the other end of the asker's own
    /// connection, as far as it says so; else it is the last entry of `X-Forwarded-For`, which the asker has written.
    /// Behind a trusted proxy, or behind the asker itself, it is not the client yet. `None`: the client is unknown.
    pub fn identify_shown(&self, asker: IpAddr, source: Option<IpAddr>, fields: &Fields) -> Option<Identity> {
        let peer = ClientIp::new(asker);
        let forwarded_for = &ForwardingHeader::XForwardedFor;
        let source = match source {
            Some(source) => ClientIp::new(source),
            None => ClientIp::new(forwarded_for.entries_from_the_right(fields).next()??),
        };
        let header = if self.trusts(source) { &self.header } else { forwarded_for };
        let is_proxy = |hop| hop == peer || self.trusts(hop);
        let client = if is_proxy(source) { walk(header, source, fields, is_proxy) } else { source };
        Some(Identity { peer, peer_is_trusted: true, client })
    }
}

/// The address behind the last proxy on the way from `peer`, which is one itself.
fn walk(header: &ForwardingHeader, peer: ClientIp, fields: &Fields, is_proxy: impl Fn(ClientIp) -> bool) -> ClientIp {
    let mut client = peer;
    for entry in header.entries_from_the_right(fields).take(MAX_HOPS) {
        let Some(address) = entry else { break };
        client = ClientIp::new(address);
        if !is_proxy(client) {
            break;
        }
    }
    client
}

// The decisions of other systems about a client: the lists with a source that it is on.

/// The lists that follow a source, each with a number below [`Reputation::MOST_LISTS`], and what they say of one client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reputation {
    /// A bit for each list.
    banned: u64,
    challenged: u64,
}

impl Reputation {
    /// A configuration has no more lists that follow a source.
    pub const MOST_LISTS: usize = 64;

    /// The list with this number bans the client.
    #[must_use]
    pub fn banned_by(self, list: u8) -> Self {
        Self { banned: self.banned | bit(list), ..self }
    }

    /// The list with this number wants the client challenged.
    #[must_use]
    pub fn challenged_by(self, list: u8) -> Self {
        Self { challenged: self.challenged | bit(list), ..self }
    }

    pub fn is_banned_by(self, list: u8) -> bool {
        self.banned & bit(list) != 0
    }

    pub fn is_challenged_by(self, list: u8) -> bool {
        self.challenged & bit(list) != 0
    }
}

fn bit(list: u8) -> u64 {
    1_u64.checked_shl(list.into()).unwrap_or(0)
}

#[cfg(test)]
mod reputation_tests {
    use super::*;

    #[test]
    fn each_list_has_its_own_say() {
        let reputation = Reputation::default().banned_by(0).challenged_by(63);
        assert!(reputation.is_banned_by(0) && !reputation.is_challenged_by(0));
        assert!(reputation.is_challenged_by(63) && !reputation.is_banned_by(63));
        assert_eq!(Reputation::default().banned_by(64), Reputation::default());
    }
}

#[cfg(test)]
mod tests;
