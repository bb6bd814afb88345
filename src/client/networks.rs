//! Networks that addresses are looked up in.

use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

use ipnet::IpNet;
use ipnet::Ipv4Net;
use ipnet::Ipv6Net;

use super::ClientIp;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(networks: &Networks, address: &str, is_inside: bool) {
        let address = ClientIp::new(address.parse().expect("the test names an address"));
        assert_eq!(networks.contains(address), is_inside, "{address:?}");
    }

    #[test]
    fn loopback_is_this_machine_in_both_families() {
        let loopback = Networks::loopback();
        check(&loopback, "127.0.0.1", true);
        check(&loopback, "127.255.0.9", true);
        check(&loopback, "::1", true);
        check(&loopback, "::ffff:127.0.0.1", true);
        check(&loopback, "::2", false);
        check(&loopback, "128.0.0.1", false);
    }

    #[test]
    fn a_network_of_mapped_addresses_holds_ipv4_addresses() {
        let mapped = Networks::new(["::ffff:10.1.2.3/104".parse().expect("a network")]);
        check(&mapped, "10.255.0.1", true);
        check(&mapped, "11.0.0.1", false);
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
        check(&Networks::default(), "127.0.0.1", false);
    }
}
