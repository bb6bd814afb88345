use proptest::prelude::*;

use crate::rules::list::*;

fn set(networks: &[&str]) -> AddressSet {
    networks.iter().map(|text| network(text).unwrap()).collect()
}

fn client(text: &str) -> ClientIp {
    ClientIp::new(text.parse().unwrap())
}

#[track_caller]
fn check(networks: &[&str], address: &str, expected: bool) {
    assert_eq!(set(networks).contains(client(address)), expected, "{address} in {networks:?}");
}

#[test]
fn a_network_holds_its_first_and_last_address_and_none_beside() {
    check(&["198.51.100.0/24"], "198.51.100.0", true);
    check(&["198.51.100.0/24"], "198.51.100.255", true);
    check(&["198.51.100.0/24"], "198.51.99.255", false);
    check(&["198.51.100.0/24"], "198.51.101.0", false);
    check(&["2001:db8:1::/48"], "2001:db8:1::", true);
    check(&["2001:db8:1::/48"], "2001:db8:1:ffff:ffff:ffff:ffff:ffff", true);
    check(&["2001:db8:1::/48"], "2001:db8:2::", false);
    check(&["2001:db8::8/125"], "2001:db8::7", false);
    check(&["2001:db8::8/125"], "2001:db8::f", true);
    check(&["2001:db8::8/125"], "2001:db8::10", false);
    check(&["2001:db8::8/125"], "2001:db8:0:1::8", false);
}

#[test]
fn bare_addresses_and_addresses_inside_a_network_are_accepted() {
    check(&["203.0.113.7"], "203.0.113.7", true);
    check(&["203.0.113.7"], "203.0.113.8", false);
    check(&["203.0.113.7/24"], "203.0.113.200", true);
    check(&["::1"], "::1", true);
}

#[test]
fn the_whole_of_a_family_is_a_network() {
    check(&["0.0.0.0/0"], "0.0.0.0", true);
    check(&["0.0.0.0/0", "10.0.0.0/8"], "255.255.255.255", true);
    check(&["0.0.0.0/0"], "::1", false);
    check(&["::/0", "2001:db8::1"], "ffff::", true);
    check(&["::/0"], "192.0.2.1", false);
}

#[test]
fn a_mapped_network_is_the_network_it_maps() {
    check(&["::ffff:198.51.100.0/120"], "198.51.100.9", true);
    check(&["198.51.100.0/24"], "::ffff:198.51.100.9", true);
    check(&["::ffff:198.51.100.9"], "198.51.100.9", true);
    assert_eq!(network("::ffff:198.51.100.9/120"), network("198.51.100.0/24"));
}

#[test]
fn networks_that_overlap_or_touch_are_one_range() {
    assert_eq!(set(&["10.0.0.0/25", "10.0.0.128/25"]), set(&["10.0.0.0/24"]));
    assert_eq!(set(&["10.0.0.7", "10.0.0.0/24", "10.0.0.0/24"]), set(&["10.0.0.0/24"]));
    assert_eq!(set(&["2001:db8::/65", "2001:db8::8000:0:0:0/65"]).v6_within.len(), 1);
    // Side by side in the sort order, but at the ends of two different /64.
    assert_eq!(set(&["2001:db8::ffff:ffff:ffff:ffff", "2001:db8:0:1::"]).v6_within.len(), 2);
}

#[test]
fn an_empty_set_holds_no_address() {
    check(&[], "192.0.2.1", false);
    check(&[], "2001:db8::1", false);
    assert!(set(&[]).is_empty());
}

#[test]
fn what_is_no_network_says_so() {
    let refused = |text: &str| network(text).unwrap_err();
    for text in ["", "300.1.1.1", "10.0.0", "office", "10.0.0.1:80", "[::1]", "fe80::1%eth0", "/24", " 10.0.0.1"] {
        assert_eq!(refused(text), InvalidNetwork::NotAnAddress(text.into()));
    }
    assert_eq!(refused("10.0.0.0/33"), InvalidNetwork::Prefix { prefix: "33".into(), bits: 32 });
    assert_eq!(refused("10.0.0.0/+8"), InvalidNetwork::Prefix { prefix: "+8".into(), bits: 32 });
    assert_eq!(refused("::/129"), InvalidNetwork::Prefix { prefix: "129".into(), bits: 128 });
    assert_eq!(refused("::/"), InvalidNetwork::Prefix { prefix: String::new(), bits: 128 });
}

#[test]
fn no_network_takes_more_than_24_bytes() {
    let v4: AddressSet =
        (0..100_000_u32).map(|i| IpNet::new(Ipv4Addr::from_bits(i * 37).into(), 32).unwrap()).collect();
    assert_eq!(v4.bytes(), 8 * 100_000);
    let within = |i: u32| IpNet::new(std::net::Ipv6Addr::from_bits(u128::from(i) * 3).into(), 128).unwrap();
    let v6: AddressSet = (0x1_0000..0x1_0000 + 100_000).map(within).collect();
    assert_eq!(v6.bytes(), 24 * 100_000);
}

fn any_network() -> impl Strategy<Value = IpNet> {
    // Few bits vary, so that networks meet.
    let v4 = (any::<u8>(), 20_u8..=32)
        .prop_map(|(low, prefix)| IpNet::new(Ipv4Addr::new(10, 0, 0, low).into(), prefix).unwrap());
    let v6 = (0_u128..4, any::<u8>(), 60_u8..=128).prop_map(|(upper, low, prefix)| {
        IpNet::new(std::net::Ipv6Addr::from_bits((upper << 64) | u128::from(low)).into(), prefix).unwrap()
    });
    prop_oneof![v4, v6]
}

proptest! {
    #[test]
    fn a_set_holds_what_one_of_its_networks_holds(
        networks in prop::collection::vec(any_network(), 0..12),
        probes in prop::collection::vec(any_network(), 1..40),
    ) {
        let set: AddressSet = networks.iter().copied().collect();
        for probe in probes {
            let expected = networks.iter().any(|network| network.contains(&probe.addr()));
            prop_assert_eq!(set.contains(ClientIp::new(probe.addr())), expected, "{}", probe.addr());
        }
    }
}
