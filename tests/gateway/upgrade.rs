//! `WebSocket` and other upgrades: a tunnel, but only after the application's 101.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

use crate::support::{Answer, Exchange, Gateway, Origin, Received, eventually};

/// Accepts a WebSocket, and echoes.
pub(crate) fn echo(mut exchange: Exchange) {
    if let Some(received) = exchange.request() {
        echo_to(&received, exchange);
    }
}

/// Completes the WebSocket handshake itself, because the head was read already, and echoes.
pub(crate) fn echo_to(received: &Received, mut exchange: Exchange) {
    let key = received.header("sec-websocket-key").expect("a key");
    let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
    exchange.write(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    ));
    let mut socket = WebSocket::from_raw_socket(exchange.into_stream(), tungstenite::protocol::Role::Server, None);
    while let Ok(message) = socket.read() {
        if (message.is_text() || message.is_binary()) && socket.send(message).is_err() {
            return;
        }
    }
}

pub(crate) fn open(gateway: &Gateway) -> WebSocket<TcpStream> {
    let stream = gateway.connect().into_stream();
    let (socket, response) =
        tungstenite::client(format!("ws://{}/live", gateway.address()), stream).expect("a WebSocket");
    assert_eq!(response.status(), 101);
    socket
}

#[test]
fn messages_pass_both_ways() {
    let origin = Origin::scripted(echo);
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut socket = open(&gateway);
    let large = Message::binary(vec![7; 1 << 20]);
    for message in [Message::text("hello"), large, Message::text("")] {
        socket.send(message.clone()).expect("an open socket");
        assert_eq!(socket.read().expect("an echo"), message);
    }
    let received = origin.last();
    assert!(received.headers.lists("connection", "upgrade"));
    assert_eq!(received.header("upgrade").map(str::to_ascii_lowercase).as_deref(), Some("websocket"));
    assert_eq!(received.header("x-real-ip"), Some("127.0.0.1"));
}

#[test]
fn an_open_socket_outlives_the_timeouts_of_requests() {
    let origin = Origin::scripted(echo);
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], timeouts: {{response: 300ms}}}}\nserver: {{timeouts: {{header: 300ms, keepalive: 300ms}}}}",
        origin.url()
    ));
    let mut socket = open(&gateway);
    std::thread::sleep(Duration::from_millis(900));
    socket.send(Message::text("still there")).expect("an open socket");
    assert_eq!(socket.read().expect("an echo"), Message::text("still there"));
}

#[test]
fn either_side_may_end_it() {
    let origin = Origin::scripted(echo);
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut socket = open(&gateway);
    socket.close(None).expect("an open socket");
    while socket.read().is_ok() {}
    let mut socket = open(&gateway);
    socket.send(Message::text("hello")).expect("an open socket");
    assert!(socket.read().is_ok());
    origin.hang_up();
    assert!(socket.read().is_err());
}

#[test]
fn a_refused_upgrade_is_an_ordinary_answer() {
    let origin = Origin::answering(|_| Answer::new(403, &[], "no"));
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let upgrade = |request: crate::support::Request| {
        request.header("Connection", "Upgrade").header("Upgrade", "websocket").header("Sec-WebSocket-Key", "eA==")
    };
    let mut client = gateway.connect();
    let response = upgrade(gateway.get("/live")).send_on(&mut client);
    assert_eq!((response.status, response.text().as_str()), (403, "no"));
    // What was sent behind the request was never a tunnel.
    assert_eq!(gateway.get("/after").send_on(&mut client).status, 403);
    assert_eq!(origin.last().target, "/after");
}

#[test]
fn upgrades_are_limited_like_any_request() {
    let origin = Origin::scripted(echo);
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - match: /live\n    limits:\n      - {{name: live, key: client_ip, rate: 1/hour}}",
        origin.url()
    ));
    let _socket = open(&gateway);
    let stream = gateway.connect().into_stream();
    let refused = tungstenite::client(format!("ws://{}/live", gateway.address()), stream).expect_err("one is enough");
    assert!(refused.to_string().contains("429"), "{refused}");
    assert_eq!(origin.count(), 1);
}

#[test]
fn half_closed_tunnels_deliver_what_is_left() {
    let origin = Origin::scripted(|mut exchange| {
        exchange.request();
        exchange.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\nready\n");
        let mut stream = exchange.into_stream();
        let mut all = String::new();
        stream.read_to_string(&mut all).expect("text until its end");
        stream.write_all(format!("got {all}").as_bytes()).expect("the other direction is open");
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n");
    assert!(client.head().starts_with("HTTP/1.1 101 "));
    eventually("the tunnel speaks first", || client.some() == b"ready\n");
    client.send("one two");
    client.finish();
    assert_eq!(String::from_utf8_lossy(&client.rest()), "got one two");
}
