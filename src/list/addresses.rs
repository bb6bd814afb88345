//! A set of networks as sorted, disjoint ranges: small, and fast to build and to search.

use std::net::IpAddr;
use std::net::Ipv4Addr;

use ipnet::IpNet;
use ipnet::Ipv4Net;
use ipnet::Ipv6Net;

use crate::client::ClientIp;

/// A set of addresses. IPv4-mapped IPv6 networks are stored as IPv4 networks.
///
/// A network takes 8 bytes (IPv4), 16 (IPv6 up to /64) or 24 (longer IPv6 prefixes), less where networks overlap.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AddressSet {
    /// First and last address.
    v4: Vec<(u32, u32)>,
    /// The first and last /64, each as the upper half of an address.
    v6: Vec<(u64, u64)>,
    /// Ranges within one /64: the upper half, then the first and the last lower half.
    v6_within: Vec<(u64, u64, u64)>,
}

impl AddressSet {
    pub fn contains(&self, client: ClientIp) -> bool {
        match client.address() {
            IpAddr::V4(address) => {
                let bits = address.to_bits();
                let after = self.v4.partition_point(|&(first, _)| first <= bits);
                after > 0 && bits <= self.v4[after - 1].1
            }
            IpAddr::V6(address) => {
                let (upper, lower) = halves(address.to_bits());
                let after = self.v6.partition_point(|&(first, _)| first <= upper);
                if after > 0 && upper <= self.v6[after - 1].1 {
                    return true;
                }
                // Compared as one number: comparing tuples would cost a branch in each step.
                let bits = address.to_bits();
                let after = self.v6_within.partition_point(|&(net, first, _)| join(net, first) <= bits);
                after > 0 && {
                    let (net, _, last) = self.v6_within[after - 1];
                    net == upper && lower <= last
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && self.v6_within.is_empty()
    }

    /// How much memory the ranges take, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.v4[..]) + size_of_val(&self.v6[..]) + size_of_val(&self.v6_within[..])
    }
}

impl FromIterator<IpNet> for AddressSet {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Self {
        let mut set = Self::default();
        for network in networks {
            match fold(network) {
                IpNet::V4(network) => set.v4.push((network.network().to_bits(), network.broadcast().to_bits())),
                IpNet::V6(network) => {
                    let (upper, lower) = halves(network.network().to_bits());
                    let (last_upper, last_lower) = halves(network.broadcast().to_bits());
                    if network.prefix_len() <= 64 {
                        set.v6.push((upper, last_upper));
                    } else {
                        set.v6_within.push((upper, lower, last_lower));
                    }
                }
            }
        }
        set.v4.sort_unstable();
        set.v4.dedup_by(|next, kept| absorb(&mut kept.1, next.0, next.1, |last| last.checked_add(1)));
        set.v4.shrink_to_fit();
        set.v6.sort_unstable();
        set.v6.dedup_by(|next, kept| absorb(&mut kept.1, next.0, next.1, |last| last.checked_add(1)));
        set.v6.shrink_to_fit();
        set.v6_within.sort_unstable();
        set.v6_within.dedup_by(|next, kept| {
            // The end of one /64 and the start of the next never join, because a range has one upper half.
            next.0 == kept.0 && absorb(&mut kept.2, next.1, next.2, |last| last.checked_add(1))
        });
        set.v6_within.shrink_to_fit();
        set
    }
}

/// Joins a range to the one before it when they overlap or touch, and answers whether they did. Ranges come sorted.
fn absorb<T: Copy + Ord>(kept_last: &mut T, first: T, last: T, successor: impl Fn(T) -> Option<T>) -> bool {
    let joins = successor(*kept_last).is_none_or(|next| first <= next);
    if joins {
        *kept_last = (*kept_last).max(last);
    }
    joins
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of 128 bits")]
fn halves(bits: u128) -> (u64, u64) {
    ((bits >> 64) as u64, bits as u64)
}

fn join(upper: u64, lower: u64) -> u128 {
    (u128::from(upper) << 64) | u128::from(lower)
}

/// `::ffff:a.b.c.d/120` is `a.b.c.d/24`.
fn fold(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let Some(address) = v6.addr().to_ipv4_mapped() else { return network };
    match v6.prefix_len().checked_sub(96).map(|prefix| Ipv4Net::new(address, prefix)) {
        Some(Ok(v4)) => IpNet::V4(v4),
        _ => network,
    }
}

/// Parses an address or a network: `198.51.100.7`, `198.51.100.0/24`, `2001:db8::/32`. Bits after the prefix are
/// dropped, and an IPv4-mapped address becomes the IPv4 address.
pub fn network(text: &str) -> Result<IpNet, InvalidNetwork> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = parse_address(address).ok_or_else(|| InvalidNetwork::NotAnAddress(text.to_owned()))?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => bits,
        // `u8::from_str` takes a sign.
        Some(prefix) if prefix.bytes().all(|digit| digit.is_ascii_digit()) => {
            let length = prefix.parse().ok().filter(|&length| length <= bits);
            length.ok_or_else(|| InvalidNetwork::Prefix { prefix: prefix.to_owned(), bits })?
        }
        Some(prefix) => return Err(InvalidNetwork::Prefix { prefix: prefix.to_owned(), bits }),
    };
    let network = match address {
        IpAddr::V4(address) => Ipv4Net::new(address, prefix).map(IpNet::V4),
        IpAddr::V6(address) => Ipv6Net::new(address, prefix).map(IpNet::V6),
    };
    let network = network.map_err(|_| InvalidNetwork::Prefix { prefix: prefix.to_string(), bits })?;
    Ok(fold(network).trunc())
}

/// The usual case first: it is half the cost of a long list.
fn parse_address(text: &str) -> Option<IpAddr> {
    if text.contains(':') { text.parse().ok() } else { text.parse::<Ipv4Addr>().ok().map(IpAddr::V4) }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidNetwork {
    #[error("`{0}` is not an address or network, write one such as `198.51.100.0/24` or `2001:db8::/32`")]
    NotAnAddress(String),
    #[error("`/{prefix}` is not a prefix length, expected 0 to {bits}")]
    Prefix { prefix: String, bits: u8 },
}

#[cfg(test)]
mod tests;
