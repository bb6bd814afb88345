//! Banned networks, looked up for each request: one look-up for each prefix length that is in use.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::clock::Timestamp;

/// Networks and until when each is banned. Callers pass IPv4-mapped addresses as IPv4.
#[derive(Debug, Default)]
pub(super) struct Networks {
    v4: AddressFamily,
    v6: AddressFamily,
}

/// Networks of one address family, by prefix length and bits.
#[derive(Debug, Default)]
struct AddressFamily {
    until: HashMap<(u8, u128), Timestamp>,
    /// How many networks there are of each prefix length.
    lengths: Vec<(u8, usize)>,
}

impl Networks {
    pub(super) fn insert(&mut self, network: IpNet, until: Timestamp) {
        let (family, at) = self.locate(network);
        if family.until.insert(at, until).is_none() {
            match family.lengths.iter_mut().find(|(length, _)| *length == at.0) {
                Some((_, count)) => *count += 1,
                None => family.lengths.push((at.0, 1)),
            }
        }
    }

    pub(super) fn remove(&mut self, network: IpNet) {
        let (family, at) = self.locate(network);
        if family.until.remove(&at).is_some() {
            family.lengths.iter_mut().filter(|(length, _)| *length == at.0).for_each(|(_, count)| *count -= 1);
            family.lengths.retain(|(_, count)| *count > 0);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.v4.until.len() + self.v6.until.len()
    }

    /// Until when an address is banned, and the network whose ban ends last.
    pub(super) fn until(&self, address: IpAddr) -> Option<(Timestamp, IpNet)> {
        let (family, bits, width) = match address {
            IpAddr::V4(address) => (&self.v4, u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (&self.v6, address.to_bits(), 128),
        };
        let found = family.lengths.iter().filter_map(|(length, _)| {
            let mask = u128::MAX.checked_shl(u32::from(width - length)).unwrap_or(0);
            Some((*family.until.get(&(*length, bits & mask))?, *length))
        });
        let (until, length) = found.max()?;
        Some((until, IpNet::new(address, length).ok()?.trunc()))
    }

    fn locate(&mut self, network: IpNet) -> (&mut AddressFamily, (u8, u128)) {
        match network.trunc() {
            IpNet::V4(network) => (&mut self.v4, (network.prefix_len(), u128::from(network.network().to_bits()))),
            IpNet::V6(network) => (&mut self.v6, (network.prefix_len(), network.network().to_bits())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn an_address_is_banned_by_any_network_it_is_in_for_as_long_as_one_lasts() {
        let mut networks = Networks::default();
        let until = |networks: &Networks, address: &str| {
            networks.until(address.parse().expect("an address")).map(|(until, _)| until)
        };
        let net = |text: &str| text.parse().expect("a network");
        networks.insert(net("198.51.100.0/24"), at(10));
        networks.insert(net("198.51.100.7/32"), at(5));
        networks.insert(net("2001:db8::/32"), at(7));
        assert_eq!(until(&networks, "198.51.100.7"), Some(at(10)));
        assert_eq!(until(&networks, "198.51.101.7"), None);
        assert_eq!(until(&networks, "2001:db8:1::1"), Some(at(7)));
        assert_eq!(until(&networks, "2001:db9::1"), None);
        let found = networks.until("198.51.100.7".parse().expect("an address"));
        assert_eq!(found, Some((at(10), net("198.51.100.0/24"))));
        networks.remove(net("198.51.100.0/24"));
        assert_eq!(until(&networks, "198.51.100.7"), Some(at(5)));
        assert_eq!(until(&networks, "198.51.100.8"), None);
        networks.insert(net("0.0.0.0/0"), at(9));
        assert_eq!(until(&networks, "203.0.113.1"), Some(at(9)));
        assert_eq!(until(&networks, "::1"), None);
        networks.insert(net("::/0"), at(9));
        assert_eq!(until(&networks, "::1"), Some(at(9)));
    }
}
