//! Splits banned networks into ranges that do not overlap. Each address keeps the ban that lasts longest.

use std::fmt;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::time::Duration;

use ipnet::IpNet;

use super::networks::short;

/// The addresses from `first` to `last`, and how long they are still banned.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct BannedRange {
    first: Bits,
    last: Bits,
    pub(super) left: Duration,
    /// Set where the range is one network as it was banned.
    network: Option<IpNet>,
}

/// Whether an address is IPv6, and its bits. IPv4 sorts first.
type Bits = (bool, u128);

/// Sorted by address.
pub(super) fn disjoint_ranges(banned: &[(IpNet, Duration)]) -> Vec<BannedRange> {
    let mut networks: Vec<_> = banned.iter().map(|(network, left)| BannedRange::of(network.trunc(), *left)).collect();
    // A network sorts before those within it. Of equal networks, the longest ban sorts first.
    networks.sort_unstable_by(|a, b| (a.first, b.last, b.left).cmp(&(b.first, a.last, a.left)));
    let (mut ranges, mut open) = (Vec::new(), Vec::<BannedRange>::new());
    for network in networks {
        while open.last().is_some_and(|around| around.last < network.first) {
            ranges.extend(open.pop());
        }
        match open.last_mut() {
            // The network around it is banned for longer.
            Some(around) if around.left >= network.left => continue,
            Some(around) => {
                ranges.extend(around.up_to(network.first));
                around.keep_after(network.last);
            }
            None => {}
        }
        open.push(network);
    }
    ranges.extend(open.into_iter().rev());
    ranges.retain(|range| range.first <= range.last);
    ranges
}

impl BannedRange {
    fn of(network: IpNet, left: Duration) -> Self {
        let (first, last) = (bits(network.network()), bits(network.broadcast()));
        Self { first, last, left, network: Some(network) }
    }

    pub(super) fn is_v4(&self) -> bool {
        !self.first.0
    }

    /// The part before an address. `None`: the range begins there.
    fn up_to(&self, first: Bits) -> Option<Self> {
        (self.first < first).then(|| Self { last: (first.0, first.1 - 1), network: None, ..self.clone() })
    }

    /// Cuts the range down to the part after an address. If nothing is left, `first` is above `last`.
    fn keep_after(&mut self, last: Bits) {
        self.network = None;
        // After the highest address there is none.
        let (first, end) = last.1.checked_add(1).map_or((1, 0), |next| (next, self.last.1));
        (self.first.1, self.last.1) = (first, end);
    }
}

impl fmt::Display for BannedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.network {
            Some(network) => f.write_str(&short(network)),
            None if self.first == self.last => write!(f, "{}", address(self.first)),
            None => write!(f, "{}-{}", address(self.first), address(self.last)),
        }
    }
}

fn bits(address: IpAddr) -> Bits {
    match address {
        IpAddr::V4(address) => (false, address.to_bits().into()),
        IpAddr::V6(address) => (true, address.to_bits()),
    }
}

fn address((is_v6, bits): Bits) -> IpAddr {
    match u32::try_from(bits) {
        Ok(bits) if !is_v6 => Ipv4Addr::from_bits(bits).into(),
        _ => Ipv6Addr::from_bits(bits).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(banned: &[(&str, u64)], expected: &[(&str, u64)]) {
        let banned: Vec<_> =
            banned.iter().map(|(net, left)| (net.parse().unwrap(), Duration::from_secs(*left))).collect();
        let found: Vec<_> =
            disjoint_ranges(&banned).iter().map(|range| (range.to_string(), range.left.as_secs())).collect();
        let expected: Vec<_> = expected.iter().map(|(range, left)| ((*range).to_owned(), *left)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_longer_ban_is_cut_out_of_the_network_around_it() {
        check(&[("198.51.100.0/24", 5), ("198.51.100.7/32", 5)], &[("198.51.100.0/24", 5)]);
        check(
            &[("198.51.100.7/32", 9), ("198.51.100.0/24", 5), ("198.51.101.0/24", 5)],
            &[
                ("198.51.100.0-198.51.100.6", 5),
                ("198.51.100.7", 9),
                ("198.51.100.8-198.51.100.255", 5),
                ("198.51.101.0/24", 5),
            ],
        );
        check(
            &[("198.51.100.0/24", 5), ("198.51.100.0/25", 9), ("198.51.100.255/32", 7)],
            &[("198.51.100.0/25", 9), ("198.51.100.128-198.51.100.254", 5), ("198.51.100.255", 7)],
        );
        check(&[("10.0.0.0/8", 3), ("10.0.0.0/8", 5)], &[("10.0.0.0/8", 5)]);
        check(
            &[("8000::/1", 3), ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 9), ("255.255.255.255/32", 1)],
            &[
                ("255.255.255.255", 1),
                ("8000::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 3),
                ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 9),
            ],
        );
    }

    proptest! {
        #[test]
        fn every_address_keeps_its_longest_ban_and_is_in_one_range(
            banned in prop::collection::vec((0_u8..=15, 28_u8..=32, 1_u64..6), 0..12),
        ) {
            let banned: Vec<_> = banned
                .iter()
                .map(|(last, prefix, left)| {
                    let network = IpNet::new(Ipv4Addr::new(10, 0, 0, *last).into(), *prefix).unwrap();
                    (network, Duration::from_secs(*left))
                })
                .collect();
            let mut found = BTreeMap::new();
            for range in disjoint_ranges(&banned) {
                for bits in range.first.1..=range.last.1 {
                    prop_assert!(found.insert(address((false, bits)), range.left).is_none());
                }
            }
            let mut expected = BTreeMap::new();
            for (network, left) in &banned {
                for host in bits(network.network()).1..=bits(network.broadcast()).1 {
                    let longest = expected.entry(address((false, host))).or_insert(*left);
                    *longest = (*longest).max(*left);
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
