//! Named lists that rules refer to: of addresses, or of the values of another selector.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::Serialize;

use crate::rules::client::ClientIp;
use crate::words::word::Help;

// A list of the configuration.

/// The position of a list in the policy that holds it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ListId(pub u16);

/// A named set of addresses or values.
#[derive(Clone, Debug)]
pub struct List {
    pub name: Arc<str>,
    pub members: Members,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Members {
    Addresses(AddressSet),
    /// Values of a selector. The selector is in the policy, beside the list, because lists know no keys.
    Values(ValueSet),
    /// Addresses that another system decides about meanwhile. The number of the list in the client's
    /// [`Reputation`](crate::rules::client::Reputation).
    Followed(u8),
}

// How a request stands to a list.

/// Which values of a request are in a list. A request has several values when it repeats a header or a field.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// No value is in the list, or the request has none.
    None,
    /// Some values are in the list, others are not.
    Some,
    /// All values are in the list, and there is at least one.
    All,
}

// A set of exact values, such as partner keys.

/// Values in the spelling in which they are compared: they are normalised when the list is read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ValueSet(HashSet<Box<str>>);

impl ValueSet {
    pub fn contains(&self, value: &str) -> bool {
        self.0.contains(value)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<S: Into<Box<str>>> FromIterator<S> for ValueSet {
    fn from_iter<I: IntoIterator<Item = S>>(values: I) -> Self {
        Self(values.into_iter().map(Into::into).collect())
    }
}

// The format of list files: one entry a line, `#` comments.

/// One entry of a list file, trimmed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ListEntry<'t> {
    /// From 1.
    pub line: usize,
    /// Where it starts in its line: from 1, in characters.
    pub column: usize,
    pub text: &'t str,
}

/// A line that is no address and no network.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}, column {column}: {}", reason.sentence())]
pub struct InvalidLine {
    pub line: usize,
    pub column: usize,
    pub reason: InvalidNetwork,
}

/// The entries of a list file, without blank lines and comments. A comment starts with a `#` at the start of a line or
/// after white space, so that a value may hold a `#`.
pub fn entries(text: &str) -> impl Iterator<Item = ListEntry<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.split('\n')).filter_map(|(line, whole)| {
        let content = uncommented(whole);
        let text = content.trim();
        if text.is_empty() {
            return None;
        }
        let indent = &content[..content.len() - content.trim_start().len()];
        Some(ListEntry { line, column: indent.chars().count() + 1, text })
    })
}

/// Parses a file of addresses and networks. The error has every line that is neither.
pub fn addresses(text: &str) -> Result<AddressSet, Vec<InvalidLine>> {
    let mut errors = Vec::new();
    let mut keep = |entry: ListEntry<'_>| -> Option<IpNet> {
        let ListEntry { line, column, text } = entry;
        network(text).map_err(|reason| errors.push(InvalidLine { line, column, reason })).ok()
    };
    let set = entries(text).filter_map(&mut keep).collect();
    if errors.is_empty() { Ok(set) } else { Err(errors) }
}

fn uncommented(line: &str) -> &str {
    let starts_comment = |at: usize| at == 0 || line[..at].chars().next_back().is_some_and(char::is_whitespace);
    let comment = memchr::memchr_iter(b'#', line.as_bytes()).find(|&at| starts_comment(at));
    comment.map_or(line, |at| &line[..at])
}

// A set of networks as sorted, disjoint ranges: small, and fast to build and to search.

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

/// Whether a text may be the name of a host, or of a group of addresses elsewhere.
fn is_name(text: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(is_name)
}

/// The usual case first: it is half the cost of a long list.
fn parse_address(text: &str) -> Option<IpAddr> {
    if text.contains(':') { text.parse().ok() } else { text.parse::<Ipv4Addr>().ok().map(IpAddr::V4) }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidNetwork {
    #[error("`{0}` is not an address or network")]
    NotAnAddress(String),
    #[error("`/{prefix}` is not a prefix length")]
    Prefix { prefix: String, bits: u8 },
}

impl Help for InvalidNetwork {
    fn help(&self) -> String {
        match self {
            Self::NotAnAddress(word) if ["all", "any", "everyone"].contains(&&*word.to_ascii_lowercase()) => {
                "no word stands for every address: write each network, such as `198.51.100.0/24`".to_owned()
            }
            Self::NotAnAddress(name) if is_name(name) => {
                "names are not looked up here: write addresses or networks, such as `198.51.100.0/24`".to_owned()
            }
            Self::NotAnAddress(_) => "write one such as `198.51.100.0/24` or `2001:db8::/32`".to_owned(),
            Self::Prefix { bits, .. } => format!("expected 0 to {bits}"),
        }
    }
}

#[cfg(test)]
mod values_tests {
    use super::*;

    #[test]
    fn values_are_compared_exactly() {
        let set: ValueSet = ["key-1", "Key-2"].into_iter().collect();
        assert!(set.contains("key-1"));
        assert!(!set.contains("KEY-1"));
        assert!(!set.contains("key-"));
        assert!(!set.contains(""));
    }
}

#[cfg(test)]
mod lines_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::client::ClientIp;

    #[track_caller]
    fn check(text: &str, expected: &[(usize, usize, &str)]) {
        let found: Vec<_> = entries(text).map(|entry| (entry.line, entry.column, entry.text)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn entries_are_lines_without_comments_and_white_space() {
        check("", &[]);
        check("10.0.0.1", &[(1, 1, "10.0.0.1")]);
        check("# abusers\n\n  10.0.0.1  # first\n10.0.0.2\t#second\n", &[(3, 3, "10.0.0.1"), (4, 1, "10.0.0.2")]);
        check("   \n\t# only a comment\n", &[]);
    }

    #[test]
    fn files_of_other_systems_read_the_same() {
        check("\u{feff}10.0.0.1\r\n10.0.0.2\r\n", &[(1, 1, "10.0.0.1"), (2, 1, "10.0.0.2")]);
        check("\u{feff}# comment\n10.0.0.2", &[(2, 1, "10.0.0.2")]);
    }

    #[test]
    fn a_value_may_hold_a_number_sign() {
        check("key#1 # the first\n#key\nkey#", &[(1, 1, "key#1"), (3, 1, "key#")]);
        check("key number 1", &[(1, 1, "key number 1")]);
    }

    #[test]
    fn every_line_that_is_no_network_is_reported() {
        let errors = addresses("10.0.0.1\n  10.0.0.x\n# fine\n10.0.0.0/40 # no\n").unwrap_err();
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "line 2, column 3: `10.0.0.x` is not an address or network, write one such as `198.51.100.0/24` or \
                 `2001:db8::/32`",
                "line 4, column 1: `/40` is not a prefix length, expected 0 to 32",
            ]
        );
    }

    #[test]
    fn a_file_of_addresses_becomes_a_set() {
        let set = addresses("198.51.100.0/24\n2001:db8::/32\r\n").unwrap();
        assert!(set.contains(ClientIp::new([198, 51, 100, 3].into())));
        assert!(!set.contains(ClientIp::new([198, 51, 101, 3].into())));
    }

    proptest! {
        #[test]
        fn any_file_has_its_entries_where_they_are_said_to_be(text in "(10[.]0[.]0[.]1|::1/64|#| |\t|\r\n|\n|x|\u{e9}){0,20}") {
            let lines: Vec<&str> = text.split('\n').collect();
            for entry in entries(&text) {
                prop_assert!(!entry.text.is_empty() && entry.text == entry.text.trim());
                let behind: String = lines[entry.line - 1].chars().skip(entry.column - 1).collect();
                prop_assert!(behind.starts_with(entry.text));
            }
            let all_are_good = addresses(&text).is_ok();
            prop_assert_eq!(all_are_good, entries(&text).all(|entry| network(entry.text).is_ok()));
        }
    }
}

#[cfg(test)]
mod tests;
