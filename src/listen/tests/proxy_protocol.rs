use super::*;
use crate::rules::client::{ForwardingHeader, TrustedProxies};

fn proxied(trusted: &str) -> ListenerSettings {
    let networks = vec![trusted.parse().unwrap()];
    ListenerSettings {
        proxy_protocol: Some(TrustedProxies::new(networks, ForwardingHeader::XForwardedFor)),
        ..ListenerSettings::default()
    }
}

fn behind_loopback(settings: ConnectionSettings) -> Server {
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
async fn a_header_that_trickles_is_closed_by_the_header_timeout() {
    let server = behind_loopback(ConnectionSettings { header: SHORT, ..settings() });
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
async fn connections_without_their_header_are_bounded_too() {
    let server = behind_loopback(ConnectionSettings { max_connections: 1, ..settings() });
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
