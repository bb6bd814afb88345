//! Writes banned networks in a format.

use std::fmt::Write;
use std::time::Duration;

use ipnet::IpNet;
use ipnet::Ipv4Net;
use ipnet::Ipv6Net;

use super::firewall;
use super::format::Format;
use super::networks::outermost;
use super::networks::short;

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
        Format::Iptables => firewall::iptables(banned),
        Format::Pf => format!("table <portcullis> persist {{ {} }}\n", all.join(", ")),
        Format::HostsDeny => {
            let v4 = v4.iter().map(|network| match network.prefix_len() {
                32 => format!("ALL: {}\n", network.addr()),
                _ => format!("ALL: {}/{}\n", network.network(), network.netmask()),
            });
            let v6 = v6.iter().map(|network| format!("ALL: [{}]/{}\n", network.network(), network.prefix_len()));
            v4.chain(v6).collect()
        }
        Format::Nft => firewall::nft(banned),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, expected: &str) {
        let banned = ["198.51.100.0/24", "198.51.100.7/32", "203.0.113.9/32", "2001:db8::/32"];
        assert_eq!(text(format.parse().unwrap(), &banned.map(hour)), expected, "{format}");
    }

    fn hour(network: &str) -> (IpNet, Duration) {
        (network.parse().unwrap(), Duration::from_secs(3600))
    }

    #[test]
    fn each_program_gets_its_own_format() {
        let plain = "198.51.100.0/24\n203.0.113.9\n2001:db8::/32\n";
        check("plain", plain);
        check("haproxy", plain);
        check("nginx", "deny 198.51.100.0/24;\ndeny 203.0.113.9;\ndeny 2001:db8::/32;\n");
        check("pf", "table <portcullis> persist { 198.51.100.0/24, 203.0.113.9, 2001:db8::/32 }\n");
        check("hosts.deny", "ALL: 198.51.100.0/255.255.255.0\nALL: 203.0.113.9\nALL: [2001:db8::]/32\n");
        let ipset = "create portcullis4 hash:net family inet maxelem 200000 -exist\nflush portcullis4\n\
                     add portcullis4 198.51.100.0/24\nadd portcullis4 203.0.113.9\n\
                     create portcullis6 hash:net family inet6 maxelem 200000 -exist\nflush portcullis6\n\
                     add portcullis6 2001:db8::/32\n";
        check("ipset", ipset);
        let cisco = "no ip access-list extended portcullis\nip access-list extended portcullis\n \
                     deny ip 198.51.100.0 0.0.0.255 any\n deny ip host 203.0.113.9 any\n permit ip any any\n\
                     no ipv6 access-list portcullis6\nipv6 access-list portcullis6\n \
                     deny ipv6 2001:db8::/32 any\n permit ipv6 any any\n";
        check("cisco", cisco);
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
