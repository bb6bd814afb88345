//! The PROXY protocol: required where it is configured, from trusted proxies only. Its source address becomes the peer.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client;

use crate::http2;
use crate::support::{Answer, Gateway, Haproxy, Origin, RawClient, Request, eventually, in_time};

/// A connection that is closed for what it sent, and not by a timeout, is closed well within this time.
const AT_ONCE: Duration = Duration::from_secs(5);

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// 203.0.113.9:4711 to 192.0.2.1:80.
pub(crate) const V4: &[u8] = &[203, 0, 113, 9, 192, 0, 2, 1, 0x12, 0x67, 0, 80];

const REQUEST: &[u8] = b"GET /asked HTTP/1.1\r\nHost: app.example\r\nConnection: close\r\n\r\n";

/// An application that answers with the client address it gets.
pub(crate) fn telling() -> Origin {
    Origin::answering(|received| {
        let [chain, client] = ["x-forwarded-for", "x-real-ip"].map(|name| received.header(name).unwrap_or("none"));
        Answer::ok(format!("{chain} | {client}"))
    })
}

fn proxied(origin: &Origin, more: &str) -> String {
    format!(
        "listen: {{address: 127.0.0.1:0, proxy_protocol: true}}\nupstream: {}\n\
         client_ip: {{trusted_proxies: [127.0.0.1, 10.0.0.0/8]}}\n{more}",
        origin.url()
    )
}

pub(crate) fn v1(source: &str) -> Vec<u8> {
    format!("PROXY TCP4 {source} 192.0.2.1 4711 80\r\n").into_bytes()
}

pub(crate) fn v2(command: u8, family: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a length of two bytes").to_be_bytes();
    [SIGNATURE, &[command, family], &length, content].concat()
}

/// The content of a header that names that IPv6 address as both ends.
fn v6(address: &str) -> Vec<u8> {
    let address: std::net::Ipv6Addr = address.parse().expect("an address");
    [&address.octets()[..], &address.octets(), &[0x12, 0x67, 0, 80]].concat()
}

#[test]
fn a_header_is_believed_or_the_connection_closed_without_an_answer() {
    let origin = telling();
    let gateway = Gateway::start(proxied(&origin, ""));
    let own = Some("127.0.0.1");
    let table = [
        (v1("203.0.113.9"), Some("203.0.113.9")),
        (b"PROXY TCP6 2001:DB8:0:0:0:0:0:9 ::1 4711 80\r\n".to_vec(), Some("2001:db8::9")),
        (b"PROXY TCP6 ::ffff:203.0.113.9 ::1 4711 80\r\n".to_vec(), Some("203.0.113.9")),
        (b"PROXY UNKNOWN\r\n".to_vec(), own),
        (b"PROXY TCP4 203.0.113.9 192.0.2.1 4711 80 \r\n".to_vec(), None),
        (v2(0x21, 0x11, V4), Some("203.0.113.9")),
        (v2(0x21, 0x21, &v6("2001:db8::9")), Some("2001:db8::9")),
        (v2(0x21, 0x21, &v6("::ffff:203.0.113.9")), Some("203.0.113.9")),
        (v2(0x20, 0x00, b""), own),
        (v2(0x11, 0x11, V4), None),
        (Vec::new(), None),
    ];
    for (header, peer) in &table {
        let mut client = gateway.connect();
        client.send([&header[..], REQUEST].concat());
        match peer {
            Some(peer) => assert_eq!(client.response().text(), format!("{peer} | {peer}"), "{}", header.escape_ascii()),
            None => assert!(client.ends_within(AT_ONCE), "{}", header.escape_ascii()),
        }
    }
    let believed = table.iter().filter(|(_, peer)| peer.is_some()).count();
    assert_eq!(origin.count(), believed, "nothing of the others went up");
}

#[test]
fn a_header_may_come_byte_by_byte() {
    let origin = telling();
    let gateway = Gateway::start(proxied(&origin, ""));
    for header in [v1("203.0.113.9"), v2(0x21, 0x11, &[V4, b"\x04\0\x02ab"].concat())] {
        let mut client = gateway.connect();
        for byte in [&header[..], REQUEST].concat() {
            client.send([byte]);
        }
        assert_eq!(client.response().text(), "203.0.113.9 | 203.0.113.9");
    }
}

#[test]
fn a_header_that_does_not_come_whole_is_closed_by_the_header_timeout() {
    let origin = telling();
    let gateway = Gateway::start(proxied(&origin, "server: {timeouts: {header: 300ms}}"));
    let mut longer = v2(0x21, 0x11, V4);
    longer[15] += 200;
    for half in [&b""[..], b"P", b"PROXY TCP4 203.0.113.9", SIGNATURE, &v2(0x21, 0x11, V4)[..20], &longer] {
        assert!(gateway.connect().send(half).ends_within(AT_ONCE), "{}", half.escape_ascii());
        // The client has closed its sending side: the gateway waits for nothing.
        let mut left = gateway.connect();
        left.send(half).finish();
        assert!(left.ends_within(AT_ONCE));
    }
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_header_is_said_once_and_holds_for_every_request_of_its_connection() {
    let origin = telling();
    let gateway = Gateway::start(proxied(&origin, ""));
    let mut client = gateway.connect();
    client.send(v1("203.0.113.9"));
    for _ in 0..3 {
        client.send(gateway.get("/").bytes());
        assert_eq!(client.response().text(), "203.0.113.9 | 203.0.113.9");
    }
    client.send(v1("203.0.113.10")).send(gateway.get("/").bytes());
    assert_eq!(client.response().status, 400);
}

#[test]
fn who_is_no_trusted_proxy_is_closed_without_an_answer_and_told_of_once() {
    let origin = telling();
    let gateway = Gateway::start(proxied(&origin, ""));
    for header in [v1("203.0.113.9"), v2(0x20, 0x00, b""), Vec::new()] {
        let mut client = RawClient::connect_from("127.0.0.9".parse().expect("an address"), gateway.address());
        client.send([&header[..], REQUEST].concat());
        assert!(client.ends_within(AT_ONCE));
    }
    assert_eq!(origin.count(), 0);
    let told =
        || gateway.log_messages().iter().filter(|line| line.contains("not in `client_ip.trusted_proxies`")).count();
    eventually("it is told of", || told() == 1);
}

#[test]
fn the_walk_through_the_forwarding_header_begins_at_the_source() {
    let origin = telling();
    let gateway = Gateway::start(proxied(&origin, ""));
    let seen = |path: &str, source: &str, forwarded: &str| {
        let mut client = gateway.connect();
        client.send(v1(source)).send(gateway.get(path).header("X-Forwarded-For", forwarded).bytes());
        client.response().text()
    };
    assert_eq!(seen("/stranger", "203.0.113.9", "198.51.100.7"), "203.0.113.9 | 203.0.113.9");
    assert_eq!(seen("/proxy", "10.0.0.5", "198.51.100.7"), "198.51.100.7, 10.0.0.5 | 198.51.100.7");
    let chain = "198.51.100.7, 10.0.0.6, 10.0.0.5 | 198.51.100.7";
    assert_eq!(seen("/proxies", "10.0.0.5", "198.51.100.7, 10.0.0.6"), chain);
    let logged = |path: &str| {
        let line = gateway.log_line(path);
        ["client", "peer"].map(|name| line[name].as_str().expect("an address").to_owned())
    };
    assert_eq!(logged("/stranger"), ["203.0.113.9", "203.0.113.9"]);
    assert_eq!(logged("/proxy"), ["198.51.100.7", "10.0.0.5"]);
}

#[test]
fn clients_are_counted_apart_though_they_come_through_one_proxy() {
    let origin = telling();
    let limit = "limits:\n  - {name: one, key: client_ip, rate: 1/hour}\nserver: {max_connections_per_client: 2}";
    let gateway = Gateway::start(proxied(&origin, limit));
    let connect = |source: &str| {
        let mut client = gateway.connect();
        client.send(v1(source)).send(gateway.get("/").bytes());
        client
    };
    let mut first = connect("203.0.113.9");
    assert_eq!(first.response().status, 200);
    let mut second = connect("203.0.113.9");
    assert_eq!(second.response().status, 429);
    assert!(connect("203.0.113.9").ends_within(AT_ONCE), "a third connection of the same client");
    assert_eq!(connect("203.0.113.10").response().status, 200);
    drop(first);
    eventually("there is room for another one", || {
        connect("203.0.113.9").try_response("GET").is_some_and(|response| response.status == 429)
    });
}

#[test]
fn a_reload_asks_for_the_header_or_no_longer_and_leaves_standing_connections_alone() {
    let origin = telling();
    let required = proxied(&origin, "");
    let plain = required.replace("proxy_protocol: true", "proxy_protocol: false");
    let gateway = Gateway::start(&plain);
    let mut standing = gateway.connect();
    standing.send(gateway.get("/").bytes());
    assert_eq!(standing.response().status, 200);

    gateway.reload(&required);
    assert!(gateway.connect().send(REQUEST).ends_within(AT_ONCE));
    let mut introduced = gateway.connect();
    introduced.send(v1("203.0.113.9")).send(gateway.get("/").bytes());
    assert_eq!(introduced.response().text(), "203.0.113.9 | 203.0.113.9");

    gateway.reload(required.replace("127.0.0.1, ", ""));
    assert!(gateway.connect().send(v1("203.0.113.9")).ends_within(AT_ONCE), "no longer trusted");

    gateway.reload(&plain);
    assert_eq!(gateway.get("/").status(), 200);
    for client in [&mut standing, &mut introduced] {
        client.send(gateway.get("/").bytes());
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn http2_is_spoken_behind_the_header() {
    let origin = telling();
    let gateway = Gateway::start(proxied(&origin, ""));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut raw = gateway.connect();
    raw.send(v2(0x21, 0x11, V4));
    let stream = raw.into_stream();
    stream.set_nonblocking(true).expect("a connected socket");
    runtime.block_on(in_time("the conversation ends", async {
        let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
        let (sender, connection) = client::handshake(stream).await.expect("HTTP/2 is spoken");
        tokio::spawn(connection);
        let request = http::Request::get("http://app.example/two").body(()).expect("a request");
        let answered = http2::ask(&sender, request, None::<Bytes>).await.expect("an answer");
        assert_eq!(answered.status, 200);
    }));
    assert_eq!(origin.last().header("x-real-ip"), Some("203.0.113.9"));
}

/// A request from another loopback address than `HAProxy`'s own, which is no trusted proxy.
fn through(haproxy: SocketAddr) -> Request {
    Request::new(haproxy, "GET", "/asked").from("127.0.0.5").header("Connection", "close")
}

#[track_caller]
fn check_haproxy(options: &str) {
    let origin = telling();
    let gateway = Gateway::start(proxied(&origin, ""));
    let haproxy = Haproxy::in_front_of(gateway.address(), options);
    let checks = || origin.requests().iter().filter(|received| received.target == "/checked").count();
    // Those are its own, and say so: a server that does not answer them gets no requests.
    eventually("HAProxy checks the gateway", || checks() >= 3);
    assert_eq!(through(haproxy.address()).send().text(), "127.0.0.5 | 127.0.0.5", "{options}");
    let clients = origin.requests().into_iter().filter(|received| received.target == "/checked");
    assert!(clients.into_iter().all(|received| received.header("x-real-ip") == Some("127.0.0.1")));
}

#[test]
fn haproxy_speaks_version_1() {
    check_haproxy("send-proxy check inter 50ms check-send-proxy");
}

#[test]
fn haproxy_speaks_version_2() {
    check_haproxy("send-proxy-v2 check inter 50ms check-send-proxy");
    check_haproxy("send-proxy-v2 proxy-v2-options unique-id,crc32c,authority check inter 50ms check-send-proxy");
}
