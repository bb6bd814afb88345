//! Rules for packet filters. Loading them again replaces what was loaded before, in one step.

use std::fmt::Write;
use std::time::Duration;

use ipnet::IpNet;

use super::networks::outermost;
use super::networks::short;
use super::ranges::BannedRange;
use super::ranges::disjoint_ranges;
use crate::units::whole_seconds;

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

/// The longest timeout that every version of nft takes, in seconds: 2^32 milliseconds.
const LONGEST_TIMEOUT: u64 = 4_294_967;

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
