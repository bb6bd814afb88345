use http::HeaderValue;
use proptest::prelude::*;

use crate::rules::client::*;
use crate::wire::head::Name;

const TRUSTED: &[&str] = &["10.0.0.0/8", "fd00::/8", "::ffff:192.0.2.0/120"];

fn proxies(header: &str) -> TrustedProxies {
    let networks = TRUSTED.iter().map(|network| network.parse().expect("a network")).collect();
    TrustedProxies::new(networks, header.parse().expect("a header name"))
}

fn identify(header: &str, peer: &str, lines: &[&str]) -> Identity {
    let fields = lines.iter().map(|line| (Name::of(header), line)).collect();
    proxies(header).identify(peer.parse().expect("an address"), &fields)
}

#[track_caller]
fn check(header: &str, peer: &str, lines: &[&str], expected: &str) {
    let identity = identify(header, peer, lines);
    assert_eq!(identity.client.address().to_string(), expected, "{header} {lines:?} from {peer}");
}

const XFF: &str = "x-forwarded-for";

#[test]
fn an_untrusted_peer_is_the_client_whatever_it_writes() {
    check(XFF, "198.51.100.7", &["1.2.3.4"], "198.51.100.7");
    assert!(!identify(XFF, "198.51.100.7", &["1.2.3.4"]).peer_is_trusted);
}

#[test]
fn a_trusted_peer_without_a_header_is_the_client() {
    check(XFF, "10.0.0.1", &[], "10.0.0.1");
    check(XFF, "10.0.0.1", &[""], "10.0.0.1");
    assert!(identify(XFF, "10.0.0.1", &[]).peer_is_trusted);
}

#[test]
fn the_walk_goes_left_while_addresses_are_trusted() {
    check(XFF, "10.0.0.1", &["1.2.3.4"], "1.2.3.4");
    check(XFF, "10.0.0.1", &["6.6.6.6, 1.2.3.4"], "1.2.3.4");
    check(XFF, "10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.9"], "1.2.3.4");
    check(XFF, "10.0.0.1", &["1.2.3.4, 10.0.0.9, fd00::1"], "1.2.3.4");
    check(XFF, "fd00::7", &["1.2.3.4, 10.0.0.9:4711, [fd00::1]:80"], "1.2.3.4");
    check(XFF, "10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
}

#[test]
fn several_lines_are_one_list_and_empty_elements_are_skipped() {
    check(XFF, "10.0.0.1", &["6.6.6.6", "1.2.3.4", "10.0.0.9"], "1.2.3.4");
    check(XFF, "10.0.0.1", &["1.2.3.4,, ,", ",10.0.0.9 ,", ""], "1.2.3.4");
}

#[test]
fn an_entry_that_is_no_address_ends_the_walk_at_the_last_good_one() {
    check(XFF, "10.0.0.1", &["1.2.3.4, unknown"], "10.0.0.1");
    check(XFF, "10.0.0.1", &["1.2.3.4, unknown, 10.0.0.9"], "10.0.0.9");
    check(XFF, "10.0.0.1", &["1.2.3.4, 10.0.0.09, 10.0.0.8"], "10.0.0.8");
}

#[test]
fn mapped_addresses_are_folded_wherever_they_stand() {
    check(XFF, "::ffff:10.0.0.1", &["::ffff:1.2.3.4, ::ffff:10.0.0.9"], "1.2.3.4");
    check(XFF, "192.0.2.77", &["1.2.3.4"], "1.2.3.4");
    check(XFF, "192.0.3.77", &["1.2.3.4"], "192.0.3.77");
}

#[test]
fn a_single_address_header_made_a_list_is_walked_as_one() {
    check("cf-connecting-ip", "10.0.0.1", &["1.2.3.4"], "1.2.3.4");
    check("cf-connecting-ip", "10.0.0.1", &["6.6.6.6", "1.2.3.4"], "1.2.3.4");
    check("cf-connecting-ip", "10.0.0.1", &["6.6.6.6, 1.2.3.4"], "1.2.3.4");
    check("cf-connecting-ip", "10.0.0.1", &["garbage"], "10.0.0.1");
}

#[test]
fn forwarded_is_walked_like_any_list() {
    check(
        "forwarded",
        "10.0.0.1",
        &["for=6.6.6.6;proto=http, for=1.2.3.4;by=10.0.0.9, FOR=\"10.0.0.9:80\""],
        "1.2.3.4",
    );
    check("forwarded", "10.0.0.1", &["for=1.2.3.4", "proto=https"], "10.0.0.1");
}

#[test]
fn the_walk_is_bounded() {
    let line = "10.9.9.9, ".repeat(6_000);
    check(XFF, "10.0.0.1", &[&format!("1.2.3.4, {line}")], "10.9.9.9");
}

#[track_caller]
fn check_shown(source: Option<&str>, lines: &[&str], expected: Option<&str>) {
    let fields = lines.iter().map(|line| (Name::of(XFF), line)).collect();
    let source = source.map(|source| source.parse().expect("an address"));
    let asker = "127.0.0.1".parse().expect("an address");
    let client = proxies(XFF).identify_shown(asker, source, &fields).map(|identity| identity.client.address());
    assert_eq!(client.map(|client| client.to_string()).as_deref(), expected, "{source:?} {lines:?}");
}

#[test]
fn the_peer_that_an_asker_names_is_the_client_unless_it_is_a_proxy() {
    check_shown(Some("127.0.0.9"), &["9.9.9.9,127.0.0.9"], Some("127.0.0.9"));
    check_shown(Some("198.51.100.7"), &[], Some("198.51.100.7"));
    check_shown(Some("10.0.0.1"), &["9.9.9.9, 198.51.100.7,10.0.0.1"], Some("198.51.100.7"));
    check_shown(Some("10.0.0.1"), &[], Some("10.0.0.1"));
    check_shown(Some("127.0.0.1"), &["9.9.9.9, 198.51.100.7,127.0.0.1"], Some("198.51.100.7"));
    check_shown(Some("::ffff:198.51.100.7"), &["9.9.9.9"], Some("198.51.100.7"));
}

#[test]
fn an_asker_that_names_no_peer_has_written_the_last_entry() {
    check_shown(None, &["9.9.9.9,127.0.0.9"], Some("127.0.0.9"));
    check_shown(None, &["9.9.9.9", "198.51.100.7, 10.0.0.1"], Some("198.51.100.7"));
    check_shown(None, &["9.9.9.9, unknown"], None);
    check_shown(None, &[], None);
}

proptest! {
    #[test]
    fn any_header_yields_a_client(line in proptest::collection::vec(any::<u8>(), 0..200), forwarded in any::<bool>()) {
        let header = if forwarded { "forwarded" } else { XFF };
        let value = HeaderValue::from_bytes(&line).ok();
        let fields = value.iter().map(|value| (Name::of(header), value)).collect();
        let _ = proxies(header).identify(IpAddr::from([10, 0, 0, 1]), &fields);
    }

    #[test]
    fn what_a_client_wrote_before_the_proxy_changes_nothing(line in "[ -~]{0,40}", forwarded in any::<bool>()) {
        let (header, written) = if forwarded { ("forwarded", "for=\"[2001:db8::9]:1\"") } else { (XFF, "2001:db8::9") };
        let identity = identify(header, "10.0.0.1", &[&format!("{line}, {written}")]);
        prop_assert_eq!(identity.client.address().to_string(), "2001:db8::9");
    }
}
