//! A set of networks as sorted, disjoint ranges: small, quick to build, quick to ask.

use ipnet::IpNet;

use crate::client::ClientIp;

/// A set of addresses. IPv4-mapped IPv6 networks are IPv4 networks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AddressSet {}

impl AddressSet {
    pub fn contains(&self, _client: ClientIp) -> bool {
        todo!()
    }
}

impl FromIterator<IpNet> for AddressSet {
    fn from_iter<I: IntoIterator<Item = IpNet>>(_networks: I) -> Self {
        todo!()
    }
}
