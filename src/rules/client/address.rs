//! Networks that addresses are looked up in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Some networks of both address families.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Networks(Box<[IpNet]>);

impl Networks {
    /// Networks of IPv4-mapped addresses become IPv4 networks.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().map(folded).collect())
    }

    /// Every address of this machine alone.
    pub fn loopback() -> Self {
        let v4 = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
        let v6 = Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128);
        Self::new([v4.into(), v6.into()])
    }

    /// A whole address family, where these networks together hold one.
    pub fn whole_family(&self) -> Option<IpNet> {
        IpNet::aggregate(&self.0.to_vec()).into_iter().find(|network| network.prefix_len() == 0)
    }

    pub fn contains(&self, address: ClientIp) -> bool {
        self.0.iter().any(|network| network.contains(&address.address()))
    }
}

fn folded(network: IpNet) -> IpNet {
    let network = network.trunc();
    if let IpNet::V6(v6) = network
        && let Some(prefix) = v6.prefix_len().checked_sub(96)
        && let Some(address) = v6.addr().to_ipv4_mapped()
        && let Ok(v4) = Ipv4Net::new(address, prefix)
    {
        return v4.into();
    }
    network
}

// An address in its canonical spelling.

/// An address in its one canonical spelling: an IPv4-mapped IPv6 address is the IPv4 address.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClientIp(IpAddr);

impl ClientIp {
    pub fn new(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }

    pub fn address(self) -> IpAddr {
        self.0
    }
}

// How many bits of an address make one client.

/// How many leading bits of an address make one client. `v4` is at most 32 and `v6` at most 128. More means all bits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Prefix {
    pub v4: u8,
    pub v6: u8,
}

impl Default for Prefix {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Prefix {
    pub const DEFAULT: Self = Self { v4: 32, v6: 64 };

    /// The network address that the client is counted under.
    pub fn cut(self, client: ClientIp) -> IpAddr {
        match client.address() {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(self.v4.into())).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(self.v6.into())).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check((v4, v6): (u8, u8), client: &str, expected: &str) {
        let client = ClientIp::new(client.parse().expect("the test names an address"));
        assert_eq!(Prefix { v4, v6 }.cut(client).to_string(), expected);
    }

    #[test]
    fn an_address_is_cut_to_the_prefix_of_its_family() {
        check((32, 64), "198.51.100.7", "198.51.100.7");
        check((24, 64), "198.51.100.7", "198.51.100.0");
        check((23, 64), "198.51.101.7", "198.51.100.0");
        check((0, 64), "198.51.100.7", "0.0.0.0");
        check((32, 64), "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check((32, 48), "2001:db8:1:2:3:4:5:6", "2001:db8:1::");
        check((32, 128), "2001:db8::1", "2001:db8::1");
        check((32, 0), "2001:db8::1", "::");
    }

    #[test]
    fn a_mapped_address_is_cut_as_the_ipv4_address_it_is() {
        check((24, 64), "::ffff:198.51.100.7", "198.51.100.0");
    }

    #[test]
    fn a_prefix_longer_than_the_address_keeps_all_of_it() {
        check((200, 200), "198.51.100.7", "198.51.100.7");
        check((200, 200), "2001:db8::1", "2001:db8::1");
    }

    #[track_caller]
    fn check_address(networks: &Networks, address: &str, is_inside: bool) {
        let address = ClientIp::new(address.parse().expect("the test names an address"));
        assert_eq!(networks.contains(address), is_inside, "{address:?}");
    }

    #[test]
    fn loopback_is_this_machine_in_both_families() {
        let loopback = Networks::loopback();
        check_address(&loopback, "127.0.0.1", true);
        check_address(&loopback, "127.255.0.9", true);
        check_address(&loopback, "::1", true);
        check_address(&loopback, "::ffff:127.0.0.1", true);
        check_address(&loopback, "::2", false);
        check_address(&loopback, "128.0.0.1", false);
    }

    #[test]
    fn a_network_of_mapped_addresses_holds_ipv4_addresses() {
        let mapped = Networks::new(["::ffff:10.1.2.3/104".parse().expect("a network")]);
        check_address(&mapped, "10.255.0.1", true);
        check_address(&mapped, "11.0.0.1", false);
    }

    #[test]
    fn several_networks_may_hold_a_whole_family() {
        let held = |networks: &[&str]| {
            let networks = networks.iter().map(|network| network.parse().expect("a network"));
            Networks::new(networks).whole_family().map(|family| family.to_string())
        };
        let (all_v4, all_v6) = (Some("0.0.0.0/0".to_owned()), Some("::/0".to_owned()));
        assert_eq!(held(&["0.0.0.0/0"]), all_v4);
        assert_eq!(held(&["::/0"]), all_v6);
        assert_eq!(held(&["128.0.0.0/1", "10.0.0.0/8", "0.0.0.0/1"]), all_v4);
        assert_eq!(held(&["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/2"]), all_v4);
        assert_eq!(held(&["8000::/1", "::/1"]), all_v6);
        assert_eq!(held(&["::ffff:0:0/96"]), all_v4);
        assert_eq!(held(&["::ffff:0:0/97", "128.0.0.0/1"]), all_v4);
        assert_eq!(held(&["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3"]), None);
        assert_eq!(held(&["0.0.0.0/1", "8000::/1"]), None);
        assert_eq!(held(&[]), None);
    }

    #[test]
    fn no_networks_hold_nothing() {
        check_address(&Networks::default(), "127.0.0.1", false);
    }
}
