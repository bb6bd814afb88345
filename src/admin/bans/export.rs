//! Exports banned networks in the formats of firewalls and servers.

use std::fmt;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use utoipa::ToSchema;

use crate::admin::AdminState;
use crate::admin::input::Query;
use crate::admin::problem::Problem;
use crate::words::units::whole_seconds;

// Answers the export request.

/// Banned networks in the formats of firewalls and servers
///
/// Banned addresses, and banned keys that are the address of a client and nothing else. `nft` is a table of its own with
/// rules that drop packets. Each entry times out when its ban ends. `iptables` is a chain of its own for
/// `iptables-restore --noflush` and `ip6tables-restore --noflush`. Loading either again replaces what was loaded before.
#[utoipa::path(
    get,
    path = "/api/v1/bans/export",
    params(("format" = inline(Option<Format>), Query, description = "Left out: `plain`.")),
    responses(
        (status = 200, description = "Text in that format.", body = String, content_type = "text/plain"),
        (status = 400, description = "There is no such format. The detail lists the formats."),
    )
)]
pub(in crate::admin) async fn export(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<impl IntoResponse, Problem> {
    let query = Query::read(query.as_deref(), &["format"])?;
    let format = query
        .text("format")
        .map_or(Ok(Format::Plain), str::parse)
        .map_err(|error: String| Problem::bad_request(error))?;
    let bans = state.store.bans();
    let now = bans.now();
    let banned: Vec<_> = bans.list().iter().filter_map(|ban| Some((ban.network()?, ban.left(now)))).collect();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text(format, &banned)))
}

// The formats of an export.

const FORMATS: [(&str, Format); 9] = [
    ("plain", Format::Plain),
    ("nft", Format::Nft),
    ("ipset", Format::Ipset),
    ("iptables", Format::Iptables),
    ("pf", Format::Pf),
    ("hosts.deny", Format::HostsDeny),
    ("nginx", Format::Nginx),
    ("haproxy", Format::Haproxy),
    ("cisco", Format::Cisco),
];

/// The program that reads the export.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum Format {
    Plain,
    Nft,
    Ipset,
    Iptables,
    Pf,
    #[schema(rename = "hosts.deny")]
    HostsDeny,
    Nginx,
    Haproxy,
    Cisco,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = FORMATS.iter().find(|(name, _)| *name == text).map(|(_, format)| *format);
        known.ok_or_else(|| {
            let names: Vec<_> = FORMATS.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("there is no such format, expected one of {}", names.join(", "))
        })
    }
}

// Writes banned networks in a format.

/// Rules that deny these networks, each for the time that its ban has left. Formats without times leave out networks that
/// lie within others.
///
/// In nft, ipset, iptables, pf and cisco, loading the text again replaces what was loaded before.
pub(super) fn text(format: Format, banned: &[(IpNet, Duration)]) -> String {
    let mut v4: Vec<Ipv4Net> = Vec::new();
    let mut v6: Vec<Ipv6Net> = Vec::new();
    for network in outermost(banned) {
        match network {
            IpNet::V4(network) => v4.push(network),
            IpNet::V6(network) => v6.push(network),
        }
    }
    let all: Vec<String> = v4
        .iter()
        .map(|network| short(&IpNet::V4(*network)))
        .chain(v6.iter().map(|network| short(&IpNet::V6(*network))))
        .collect();
    match format {
        Format::Plain | Format::Haproxy => lines(&all, str::to_owned),
        Format::Nginx => lines(&all, |network| format!("deny {network};")),
        Format::Iptables => iptables(banned),
        Format::Pf => format!("table <portcullis> persist {{ {} }}\n", all.join(", ")),
        Format::HostsDeny => {
            let v4 = v4.iter().map(|network| match network.prefix_len() {
                32 => format!("ALL: {}\n", network.addr()),
                _ => format!("ALL: {}/{}\n", network.network(), network.netmask()),
            });
            let v6 = v6.iter().map(|network| format!("ALL: [{}]/{}\n", network.network(), network.prefix_len()));
            v4.chain(v6).collect()
        }
        Format::Nft => nft(banned),
        Format::Ipset => {
            ipset("portcullis4", "inet", &all[..v4.len()]) + &ipset("portcullis6", "inet6", &all[v4.len()..])
        }
        Format::Cisco => cisco(&v4, &v6),
    }
}

fn lines(networks: &[String], line: impl Fn(&str) -> String) -> String {
    networks.iter().map(|network| line(network) + "\n").collect()
}

fn ipset(set: &str, family: &str, networks: &[String]) -> String {
    let mut text = format!("create {set} hash:net family {family} maxelem 200000 -exist\nflush {set}\n");
    for network in networks {
        let _ = writeln!(text, "add {set} {network}");
    }
    text
}

fn cisco(v4: &[Ipv4Net], v6: &[Ipv6Net]) -> String {
    let mut text = "no ip access-list extended portcullis\nip access-list extended portcullis\n".to_owned();
    for network in v4 {
        let _ = match network.prefix_len() {
            32 => writeln!(text, " deny ip host {} any", network.addr()),
            _ => writeln!(text, " deny ip {} {} any", network.network(), network.hostmask()),
        };
    }
    text.push_str(" permit ip any any\nno ipv6 access-list portcullis6\nipv6 access-list portcullis6\n");
    for network in v6 {
        let _ = writeln!(text, " deny ipv6 {network} any");
    }
    text.push_str(" permit ipv6 any any\n");
    text
}

// Rules for packet filters. Loading them again replaces what was loaded before, in one step.

/// The longest timeout that every version of nft takes, in seconds: 2^32 milliseconds.
const LONGEST_TIMEOUT: u64 = 4_294_967;

/// A table of its own for `nft -f`, with a set for IPv4, a set for IPv6, and rules that drop packets from them. Each
/// entry times out when its ban ends, even if nothing is loaded again.
pub(super) fn nft(banned: &[(IpNet, Duration)]) -> String {
    let ranges = disjoint_ranges(banned);
    let (v4, v6): (Vec<_>, Vec<_>) = ranges.iter().partition(|range| range.is_v4());
    // Deleting a table that is not there is an error, and adding one that is there is not. So it is added first.
    let mut text = "add table inet portcullis\ndelete table inet portcullis\n\ntable inet portcullis {\n".to_owned();
    set(&mut text, "banned4", "ipv4_addr", &v4);
    set(&mut text, "banned6", "ipv6_addr", &v6);
    // Priority -300 is before all other rules, so the packet is dropped before it is routed to a container.
    text.push_str(
        "\tchain drop_banned {\n\t\ttype filter hook prerouting priority -300; policy accept;\n\
         \t\tip saddr @banned4 drop\n\t\tip6 saddr @banned6 drop\n\t}\n}\n",
    );
    text
}

fn set(text: &mut String, name: &str, kind: &str, ranges: &[&BannedRange]) {
    let _ = write!(text, "\tset {name} {{\n\t\ttype {kind}\n\t\tflags interval, timeout\n");
    if !ranges.is_empty() {
        let elements: Vec<_> = ranges
            .iter()
            .map(|range| format!("{range} timeout {}s", whole_seconds(range.left).clamp(1, LONGEST_TIMEOUT)))
            .collect();
        let _ = write!(text, "\t\telements = {{\n\t\t\t{}\n\t\t}}\n", elements.join(",\n\t\t\t"));
    }
    text.push_str("\t}\n");
}

/// A chain of its own. The same text works with `iptables-restore --noflush` and `ip6tables-restore --noflush`: each
/// takes the lines of its address family.
pub(super) fn iptables(banned: &[(IpNet, Duration)]) -> String {
    let mut text = "\
# For `iptables-restore --noflush` and `ip6tables-restore --noflush`, as often as you like. Packets come here by a rule
# of yours, to be made once: `iptables -I INPUT -j PORTCULLIS`, and the same with `ip6tables`.
*filter
:PORTCULLIS - [0:0]
-F PORTCULLIS
"
    .to_owned();
    for network in outermost(banned) {
        let kind = if network.addr().is_ipv4() { "-4" } else { "-6" };
        let _ = writeln!(text, "{kind} -A PORTCULLIS -s {} -j DROP", short(&network));
    }
    text.push_str("COMMIT\n");
    text
}

// Sorts banned networks and writes them as text.

/// Sorted, without networks that lie within others. Neighbours are not merged, so that each ban can be found as it was
/// set.
pub(super) fn outermost(banned: &[(IpNet, Duration)]) -> Vec<IpNet> {
    let mut networks: Vec<IpNet> = banned.iter().map(|(network, _)| network.trunc()).collect();
    // A network sorts before those within it.
    networks.sort_unstable_by_key(|network| (network.network(), network.prefix_len()));
    networks.dedup_by(|next, kept| kept.contains(&*next));
    networks
}

/// A network as text, a single address without its prefix.
pub(super) fn short(network: &IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() { network.addr().to_string() } else { network.to_string() }
}

// Splits banned networks into ranges that do not overlap. Each address keeps the ban that lasts longest.

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

    #[track_caller]
    fn check_export(format: &str, expected: &str) {
        let banned = ["198.51.100.0/24", "198.51.100.7/32", "203.0.113.9/32", "2001:db8::/32"];
        assert_eq!(text(format.parse().unwrap(), &banned.map(hour)), expected, "{format}");
    }

    fn hour(network: &str) -> (IpNet, Duration) {
        (network.parse().unwrap(), Duration::from_secs(3600))
    }

    #[test]
    fn each_program_gets_its_own_format() {
        let plain = "198.51.100.0/24\n203.0.113.9\n2001:db8::/32\n";
        check_export("plain", plain);
        check_export("haproxy", plain);
        check_export("nginx", "deny 198.51.100.0/24;\ndeny 203.0.113.9;\ndeny 2001:db8::/32;\n");
        check_export("pf", "table <portcullis> persist { 198.51.100.0/24, 203.0.113.9, 2001:db8::/32 }\n");
        check_export("hosts.deny", "ALL: 198.51.100.0/255.255.255.0\nALL: 203.0.113.9\nALL: [2001:db8::]/32\n");
        let ipset = "create portcullis4 hash:net family inet maxelem 200000 -exist\nflush portcullis4\n\
                     add portcullis4 198.51.100.0/24\nadd portcullis4 203.0.113.9\n\
                     create portcullis6 hash:net family inet6 maxelem 200000 -exist\nflush portcullis6\n\
                     add portcullis6 2001:db8::/32\n";
        check_export("ipset", ipset);
        let cisco = "no ip access-list extended portcullis\nip access-list extended portcullis\n \
                     deny ip 198.51.100.0 0.0.0.255 any\n deny ip host 203.0.113.9 any\n permit ip any any\n\
                     no ipv6 access-list portcullis6\nipv6 access-list portcullis6\n \
                     deny ipv6 2001:db8::/32 any\n permit ipv6 any any\n";
        check_export("cisco", cisco);
    }

    #[test]
    fn neighbours_are_not_merged() {
        let networks = ["198.51.100.7/32", "198.51.100.6/32", "198.51.100.6/32"].map(hour);
        assert_eq!(text(Format::Plain, &networks), "198.51.100.6\n198.51.100.7\n");
    }

    #[test]
    fn without_bans_the_list_is_empty_and_valid() {
        assert_eq!(text(Format::Plain, &[]), "");
        assert!(!text(Format::Nft, &[]).contains("elements"));
        assert!("fail2ban".parse::<Format>().unwrap_err().contains("`hosts.deny`"));
    }
}
