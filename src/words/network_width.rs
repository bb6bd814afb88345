//! Which networks are so large that a ban of one is probably a mistake.

use ipnet::IpNet;

/// The prefix that a network should have at least: /8, or /16 of IPv6. `None`: it has that.
pub fn shortest_prefix(network: IpNet) -> Option<u8> {
    let (length, shortest) = match network {
        IpNet::V4(network) => (network.prefix_len(), SHORTEST_V4),
        IpNet::V6(network) => match network.addr().to_ipv4_mapped() {
            // All of `::ffff:0:0/96` is all of IPv4.
            Some(_) if network.prefix_len() >= MAPPED => (network.prefix_len() - MAPPED, SHORTEST_V4),
            _ => (network.prefix_len(), SHORTEST_V6),
        },
    };
    (length < shortest).then_some(shortest)
}

const SHORTEST_V4: u8 = 8;

const SHORTEST_V6: u8 = 16;

/// The bits before the address in an IPv4-mapped one.
const MAPPED: u8 = 96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_large_by_its_own_family() {
        let of = |text: &str| shortest_prefix(text.parse().unwrap());
        for (large, shortest) in [
            ("0.0.0.0/0", 8),
            ("10.0.0.0/7", 8),
            ("::/0", 16),
            ("2000::/3", 16),
            ("::ffff:0:0/96", 8),
            ("::ffff:a00:0/103", 8),
        ] {
            assert_eq!(of(large), Some(shortest), "{large}");
        }
        for small in ["10.0.0.0/8", "198.51.100.7/32", "2001::/16", "2001:db8::1/128", "::ffff:a00:0/104"] {
            assert_eq!(of(small), None, "{small}");
        }
    }
}
