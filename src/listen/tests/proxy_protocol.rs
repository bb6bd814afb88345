use std::net::SocketAddr;

use super::*;
use crate::client::ForwardingHeader;
use crate::client::TrustedProxies;

fn proxied(trusted: &str) -> ListenerSettings {
    let networks = vec![trusted.parse().unwrap()];
    ListenerSettings {
        proxy_protocol: Some(TrustedProxies::new(networks, ForwardingHeader::XForwardedFor)),
        ..ListenerSettings::default()
    }
}

fn behind_loopback(settings: Settings) -> Server {
    Server::with_terms(settings, proxied("127.0.0.0/8"))
}

async fn connect_through_proxy(server: &Server, source: &str) -> Client {
    let mut client = server.connect().await;
    client.send(format!("PROXY TCP4 {source} 192.0.2.1 4711 80\r\n")).await;
    client
}

#[tokio::test]
async fn the_source_of_the_header_is_the_peer_and_its_destination_where_it_came_to() {
    let server = behind_loopback(settings());
    let mut client = connect_through_proxy(&server, "203.0.113.9").await;

    assert!(client.get("/ends").await.ends_with("\r\n203.0.113.9:4711 192.0.2.1:80\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn a_proxy_that_speaks_for_itself_is_the_peer() {
    let server = behind_loopback(settings());
    let mut client = server.connect().await;
    let SocketAddr::V4(peer) = client.stream.local_addr().unwrap() else { panic!("127.0.0.1 is IPv4") };

    client.send("PROXY UNKNOWN\r\n").await;

    assert!(client.get("/ends").await.contains(&format!("\r\n{peer} {}\r\n", server.address)));
}

#[tokio::test]
async fn half_a_header_is_closed_by_the_header_timeout() {
    for half in ["", "PROXY TCP4 203.0.113.9", "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c1234"] {
        let server = behind_loopback(Settings { header: SHORT, ..settings() });
        let mut client = server.connect().await;
        client.send(half).await;
        client.closed().await;
        eventually(|| server.connections.count() == 0).await;
    }
}

#[tokio::test]
async fn a_header_that_trickles_is_closed_by_the_header_timeout() {
    let server = behind_loopback(Settings { header: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("PROXY UNKNOWN ").await;
    for _ in 0..60 {
        if !client.is_silent(SHORT / 10).await {
            return;
        }
        let _ = client.stream.try_write(b"x");
    }
    panic!("still open");
}

#[tokio::test]
async fn a_peer_that_is_no_trusted_proxy_is_closed_at_once_whatever_it_sends() {
    let server = Server::with_terms(settings(), proxied("192.0.2.0/24"));
    connect_through_proxy(&server, "203.0.113.9").await.closed().await;
    server.connect().await.closed().await;
}

#[tokio::test]
async fn connections_are_counted_for_the_client_behind_the_proxy() {
    let server = behind_loopback(Settings { max_connections_per_client: 1, ..settings() });
    let mut first = connect_through_proxy(&server, "203.0.113.9").await;
    first.get("/").await;

    connect_through_proxy(&server, "203.0.113.9").await.closed().await;

    assert!(connect_through_proxy(&server, "203.0.113.10").await.get("/").await.contains("hello"));
    assert!(first.get("/").await.contains("hello"));
}

#[tokio::test]
async fn connections_without_their_header_are_bounded_too() {
    let server = behind_loopback(Settings { max_connections: 1, ..settings() });
    let mut silent = server.connect().await;
    eventually(|| server.connections.count() == 1).await;
    let mut second = connect_through_proxy(&server, "203.0.113.9").await;
    second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(second.is_silent(SHORT).await);

    silent.send("nonsense").await;

    assert!(second.answer().await.contains("hello"));
}

#[tokio::test]
async fn draining_does_not_wait_long_for_a_header() {
    let server = behind_loopback(settings());
    let mut silent = server.connect().await;
    let mut late = server.connect().await;
    eventually(|| server.connections.count() == 2).await;

    let connections = server.connections.clone();
    let drained = tokio::spawn(async move { connections.drain().await });
    late.send("PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").await;

    assert!(late.rest().await.contains("hello"));
    silent.closed().await;
    drained.await.unwrap();
}

#[tokio::test]
async fn terms_that_change_hold_for_new_connections_alone() {
    let server = Server::start(settings());
    let mut standing = server.connect().await;
    standing.get("/").await;

    server.door.change(ListenerRuntime::prepare(proxied("127.0.0.0/8"), None).unwrap());

    assert!(standing.get("/").await.contains("hello"));
    let mut plain = server.connect().await;
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    plain.closed().await;
    assert!(connect_through_proxy(&server, "203.0.113.9").await.get("/").await.contains("hello"));

    server.door.change(ListenerRuntime::default());
    assert!(server.connect().await.get("/").await.contains("hello"));
}
