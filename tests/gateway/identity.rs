//! The client address: the peer, or what a trusted proxy says.

use crate::support::{Gateway, Origin, Response};

fn behind_trusted_proxy(origin: &Origin, client_ip: &str) -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nclient_ip: {{trusted_proxies: [127.0.0.0/8], {client_ip}}}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}",
        origin.url()
    ))
}

/// The client address that the application gets for these header lines of a trusted proxy.
fn client_seen(settings: &str, header: &str, lines: &[&str]) -> String {
    let origin = Origin::start();
    let gateway = behind_trusted_proxy(&origin, settings);
    let request = lines.iter().fold(gateway.get("/"), |request, line| request.header(header, line));
    assert_eq!(request.status(), 200);
    origin.last().header("x-real-ip").expect("X-Real-IP is always set").to_owned()
}

#[track_caller]
fn check(lines: &[&str], expected: &str) {
    assert_eq!(client_seen("header: x-forwarded-for", "X-Forwarded-For", lines), expected, "{lines:?}");
}

#[test]
fn the_walk_goes_from_the_right_through_trusted_proxies() {
    check(&["203.0.113.9"], "203.0.113.9");
    check(&["198.51.100.1, 203.0.113.9, 127.0.0.7"], "203.0.113.9");
    check(&["198.51.100.1", "203.0.113.9", "127.0.0.7, 127.0.0.8"], "203.0.113.9");
    check(&["127.0.0.5, 127.0.0.6"], "127.0.0.5");
    check(&[" , 203.0.113.9,, "], "203.0.113.9");
}

#[test]
fn an_entry_that_is_no_address_ends_the_walk_at_the_last_good_one() {
    check(&["unknown"], "127.0.0.1");
    check(&["203.0.113.9, garbage, 127.0.0.2"], "127.0.0.2");
    check(&["203.0.113.9, 203.0.113.999"], "127.0.0.1");
    check(&[""], "127.0.0.1");
}

#[test]
fn ports_brackets_zones_and_mapped_addresses_are_reduced_to_the_address() {
    check(&["203.0.113.9:4711"], "203.0.113.9");
    check(&["[2001:db8::1]:443"], "2001:db8::1");
    check(&["[2001:db8::1]"], "2001:db8::1");
    check(&["fe80::1%eth0"], "fe80::1");
    check(&["2001:DB8:0:0:0:0:0:1"], "2001:db8::1");
    check(&["::ffff:203.0.113.9"], "203.0.113.9");
}

#[test]
fn the_forwarded_header_is_read_when_it_is_the_one_configured() {
    let seen = |lines: &[&str]| client_seen("header: forwarded", "Forwarded", lines);
    assert_eq!(seen(&["for=203.0.113.9;proto=https"]), "203.0.113.9");
    assert_eq!(seen(&["for=198.51.100.1, For=\"[2001:db8::1]:443\";by=127.0.0.1"]), "2001:db8::1");
    assert_eq!(seen(&["for=203.0.113.9", "for=127.0.0.9"]), "203.0.113.9");
    assert_eq!(seen(&["for=_hidden"]), "127.0.0.1");
    assert_eq!(seen(&["for=unknown, for=127.0.0.9"]), "127.0.0.9");
}

#[test]
fn a_single_address_header_is_read_when_it_is_the_one_configured() {
    let seen = |lines: &[&str]| client_seen("header: cf-connecting-ip", "CF-Connecting-IP", lines);
    assert_eq!(seen(&["203.0.113.9"]), "203.0.113.9");
    assert_eq!(seen(&["nobody"]), "127.0.0.1");
    assert_eq!(seen(&[]), "127.0.0.1");
}

#[test]
fn from_an_untrusted_peer_every_forwarding_header_is_discarded_and_written_anew() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let names = [
        "X-Forwarded-For",
        "X-Real-IP",
        "Forwarded",
        "X-Forwarded-Proto",
        "X-Forwarded-Host",
        "X-Forwarded-Port",
        "X-Forwarded-Server",
        "X-Forwarded-Prefix",
        "X-Client-IP",
        "True-Client-IP",
        "CF-Connecting-IP",
        "CloudFront-Viewer-Address",
        "X-Cluster-Client-IP",
        "Fastly-Client-IP",
    ];
    let request = names.iter().fold(gateway.get("/"), |request, name| request.header(name, "203.0.113.9"));
    assert_eq!(request.status(), 200);
    let received = origin.last();
    assert_eq!(received.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(received.header("x-real-ip"), Some("127.0.0.1"));
    assert_eq!(received.header("x-forwarded-proto"), Some("http"));
    assert_eq!(received.header("x-forwarded-host"), Some("app.example"));
    assert!(!received.head.contains("203.0.113.9"), "{}", received.head);
}

#[test]
fn the_header_of_trusted_proxies_is_not_taken_from_strangers() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nclient_ip: {{trusted_proxies: [10.0.0.0/8], header: X-Edge-Client}}",
        origin.url()
    ));
    let request = gateway.get("/").header("X-Edge-Client", "203.0.113.9").header("X_Edge_Client", "203.0.113.9");
    assert_eq!(request.status(), 200);
    assert!(!origin.last().head.contains("203.0.113.9"), "{}", origin.last().head);
}

#[test]
fn behind_a_trusted_proxy_the_list_is_passed_on_with_the_peer_at_its_end() {
    let origin = Origin::start();
    let gateway = behind_trusted_proxy(&origin, "header: x-forwarded-for");
    let request = gateway
        .get("/")
        .header("X-Forwarded-For", "198.51.100.1, 203.0.113.9")
        .header("X-Forwarded-For", "127.0.0.7")
        .header("X-Forwarded-Proto", "https");
    assert_eq!(request.status(), 200);
    let received = origin.last();
    assert_eq!(received.header("x-forwarded-for"), Some("198.51.100.1, 203.0.113.9, 127.0.0.7, 127.0.0.1"));
    assert_eq!(received.header("x-real-ip"), Some("203.0.113.9"));
    assert_eq!(received.header("x-forwarded-proto"), Some("https"));
}

#[test]
fn what_a_trusted_proxy_says_of_the_scheme_is_understood_however_it_is_written() {
    let origin = Origin::start();
    let trusted = "client_ip: {trusted_proxies: [127.0.0.0/8]}";
    let gateway = Gateway::start(format!("upstream: {}\n{trusted}", origin.url()));
    let forwarded = |lines: &[&str]| {
        let request = lines.iter().fold(gateway.get("/"), |request, line| request.header("X-Forwarded-Proto", line));
        assert_eq!(request.status(), 200);
        origin.last().header("x-forwarded-proto").map(str::to_owned).expect("it is always set")
    };
    for (lines, expected) in [
        (&["https"][..], "https"),
        (&["HTTPS"], "https"),
        (&["Wss"], "wss"),
        (&["ws"], "ws"),
        (&["http, https"], "https"),
        (&["https,http"], "http"),
        (&["https , "], "https"),
        (&["http", "https"], "https"),
        (&[""], "http"),
        (&["gopher"], "http"),
        (&["https, gopher"], "http"),
    ] {
        assert_eq!(forwarded(lines), expected, "{lines:?}");
    }
}

#[test]
fn empty_forwarding_fields_of_a_trusted_proxy_are_none() {
    let origin = Origin::start();
    let gateway = behind_trusted_proxy(&origin, "header: x-forwarded-for");
    let request = gateway.get("/").header("X-Forwarded-For", "").header("Forwarded", " ");
    assert_eq!(request.header("X-Forwarded-Host", "a.example, b.example").status(), 200);
    let received = origin.last();
    assert_eq!(received.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(received.header("forwarded"), Some("for=127.0.0.1"));
    assert_eq!(received.header("x-forwarded-host"), Some("b.example"));
}

/// The statuses of two clients that share a budget of one request, or do not.
fn two_clients(settings: &str, first: &str, second: &str) -> (Response, Response) {
    let origin = Origin::start();
    let gateway = behind_trusted_proxy(&origin, settings);
    let ask = |client: &str| gateway.get("/").header("X-Forwarded-For", client).send();
    (ask(first), ask(second))
}

#[test]
fn clients_are_counted_by_prefix() {
    #[track_caller]
    fn check(settings: &str, first: &str, second: &str, second_status: u16) {
        let (one, two) = two_clients(settings, first, second);
        assert_eq!((one.status, two.status), (200, second_status), "{first} then {second}");
    }
    let default = "header: x-forwarded-for";
    check(default, "203.0.113.9", "203.0.113.9", 429);
    check(default, "203.0.113.9", "203.0.113.10", 200);
    check(default, "203.0.113.9", "::ffff:203.0.113.9", 429);
    check(default, "2001:db8::1", "2001:db8:0:0:ffff::2", 429);
    check(default, "2001:db8::1", "2001:db8:0:1::1", 200);
    let wide = "ipv4_prefix: 24, ipv6_prefix: 48";
    check(wide, "203.0.113.9", "203.0.113.200", 429);
    check(wide, "203.0.113.9", "203.0.114.9", 200);
    check(wide, "2001:db8::1", "2001:db8:0:1::1", 429);
}

#[test]
fn a_client_cannot_choose_its_identity_by_a_header() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}", origin.url()));
    assert_eq!(gateway.get("/").header("X-Forwarded-For", "203.0.113.1").status(), 200);
    assert_eq!(gateway.get("/").header("X-Forwarded-For", "203.0.113.2").status(), 429);
    assert_eq!(gateway.get("/").from("127.0.0.2").status(), 200);
}

#[test]
fn a_forwarding_header_alone_is_not_logged() {
    let origin = Origin::start();
    let settings = ["trusted_proxies: [127.0.0.1]", "trusted_proxies: [10.0.0.1], header: x-custom-ip"];
    for (settings, client) in settings.into_iter().zip(["203.0.113.9", "127.0.0.1"]) {
        let gateway = Gateway::start(format!("upstream: {}\nclient_ip: {{{settings}}}", origin.url()));
        let request = gateway.get("/").header("X-Forwarded-For", "203.0.113.9").header("X-Custom-Ip", "203.0.113.9");
        assert_eq!(request.status(), 200);
        assert_eq!(gateway.log_line("/")["client"], client);
        let logged = gateway.stderr();
        assert!(!logged.iter().any(|line| line.contains("forwarded-for") || line.contains("custom-ip")), "{logged:?}");
    }
}
