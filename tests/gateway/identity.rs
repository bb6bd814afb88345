//! The client address: the peer, or what a trusted proxy says.

use crate::support::{Gateway, Origin};

fn behind_trusted_proxy(origin: &Origin, client_ip: &str) -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nclient_ip: {{trusted_proxies: [127.0.0.0/8], {client_ip}}}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}",
        origin.url()
    ))
}

/// The client address that the application gets for this header of a trusted proxy.
fn client_seen(settings: &str, header: &str, value: &str) -> String {
    let origin = Origin::start();
    let gateway = behind_trusted_proxy(&origin, settings);
    assert_eq!(gateway.get("/").header(header, value).status(), 200);
    origin.last().header("x-real-ip").expect("X-Real-IP is always set").to_owned()
}

#[test]
fn the_forwarded_header_is_read_when_it_is_the_one_configured() {
    let list = "for=198.51.100.1, For=\"[2001:db8::1]:443\";by=127.0.0.1";
    assert_eq!(client_seen("header: forwarded", "Forwarded", list), "2001:db8::1");
}

#[test]
fn a_single_address_header_is_read_when_it_is_the_one_configured() {
    assert_eq!(client_seen("header: cf-connecting-ip", "CF-Connecting-IP", "203.0.113.9"), "203.0.113.9");
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

#[test]
fn clients_are_counted_by_prefix() {
    for (settings, first, second) in [
        ("header: x-forwarded-for", "2001:db8::1", "2001:db8:0:0:ffff::2"),
        ("ipv4_prefix: 24, ipv6_prefix: 48", "203.0.113.9", "203.0.113.200"),
    ] {
        let origin = Origin::start();
        let gateway = behind_trusted_proxy(&origin, settings);
        let ask = |client: &str| gateway.get("/").header("X-Forwarded-For", client).status();
        assert_eq!((ask(first), ask(second)), (200, 429), "{first} then {second}");
    }
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
