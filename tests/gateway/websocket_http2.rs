//! `WebSocket` over HTTP/2 (RFC 8441): an extended CONNECT becomes an HTTP/1.1 upgrade, and its stream carries bytes
//! both ways.

use std::net::TcpStream;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream, client};
use http::{Method, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::chromium::Chromium;
use crate::http2::{ask, over_http2};
use crate::support::{
    Answer, CertificateAuthority, Exchange, Gateway, Origin, Received, TlsClientConfig, eventually, in_time, until,
};
use crate::tls::simple;
use crate::upgrade::{echo, echo_to};

/// The head of a request for a tunnel, as browsers write it.
pub(crate) fn connect(uri: &str, protocol: &'static str) -> Request<()> {
    Request::builder()
        .method(Method::CONNECT)
        .uri(uri)
        .header("origin", "https://a.test")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "chat")
        .extension(Protocol::from_static(protocol))
        .body(())
        .expect("a request")
}

/// A connection on which the gateway has announced extended CONNECT.
pub(crate) async fn announced(sender: &SendRequest<Bytes>) -> SendRequest<Bytes> {
    until("the setting is announced", || sender.is_extended_connect_protocol_enabled()).await;
    sender.clone().ready().await.expect("a connection")
}

/// Asks for `/live`; what it sends meanwhile goes into the stream.
pub(crate) async fn asked(sender: &SendRequest<Bytes>) -> (Response<RecvStream>, SendStream<Bytes>) {
    let (answer, send) =
        announced(sender).await.send_request(connect("http://a/live", "websocket"), false).expect("sent");
    (answer.await.expect("an answer"), send)
}

/// A tunnel that is open.
pub(crate) async fn opened(sender: &SendRequest<Bytes>) -> (RecvStream, SendStream<Bytes>) {
    let (answer, send) = asked(sender).await;
    assert_eq!(answer.status(), 200);
    (answer.into_body(), send)
}

/// A stream as something that is read and written; closed, it ends the client's side.
fn pipe(mut receive: RecvStream, mut send: SendStream<Bytes>) -> DuplexStream {
    let (near, far) = duplex(64 * 1024);
    let (mut written, mut read) = split(far);
    tokio::spawn(async move {
        while let Some(Ok(data)) = receive.data().await {
            receive.flow_control().release_capacity(data.len()).expect("a stream");
            if read.write_all(&data).await.is_err() {
                return;
            }
        }
        let _ = read.shutdown().await;
    });
    tokio::spawn(async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = written.read(&mut buffer).await {
            if send_all(&mut send, &buffer[..length]).await.is_err() {
                return;
            }
        }
        let _ = send.send_data(Bytes::new(), true);
    });
    near
}

/// Sends as the other side makes room.
pub(crate) async fn send_all(send: &mut SendStream<Bytes>, mut bytes: &[u8]) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        send.reserve_capacity(bytes.len());
        let room = std::future::poll_fn(|cx| send.poll_capacity(cx)).await.ok_or(Reason::CANCEL)??;
        let (now, later) = bytes.split_at(room.min(bytes.len()));
        send.send_data(Bytes::copy_from_slice(now), false)?;
        bytes = later;
    }
    Ok(())
}

/// Speaks WebSocket with an application that echoes.
async fn converse(sender: &SendRequest<Bytes>) {
    let (receive, send) = opened(sender).await;
    let mut socket = WebSocketStream::from_raw_socket(pipe(receive, send), Role::Client, None).await;
    for message in [Message::text("hello"), Message::binary(vec![7; 1 << 20]), Message::text("")] {
        socket.send(message.clone()).await.expect("an open socket");
        assert_eq!(socket.next().await.expect("an echo").expect("an open socket"), message);
    }
    socket.close(None).await.expect("an open socket");
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
}

/// Answers the handshake correctly, and then runs the script.
pub(crate) fn accepting(then: impl Fn(TcpStream) + Send + Sync + 'static) -> Origin {
    Origin::scripted(move |mut exchange| {
        if let Some(received) = exchange.request() {
            accept(&mut exchange, &received);
            then(exchange.into_stream());
        }
    })
}

pub(crate) fn accept(exchange: &mut Exchange, received: &Received) {
    let accept = derive_accept_key(received.header("sec-websocket-key").expect("a key").as_bytes());
    exchange.write(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\nX-Own: 1\r\n\r\n"
    ));
}

#[test]
fn messages_pass_both_ways_over_cleartext() {
    let origin = Origin::scripted(echo);
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        tokio::join!(converse(&sender), converse(&sender), converse(&sender));
    });
    assert_eq!(origin.count(), 3);
    let line = gateway.log_line("/live");
    assert_eq!((&line["method"], &line["protocol"], &line["status"]), (&"GET".into(), &"h2".into(), &101.into()));
    let bytes = |name: &str| line[name].as_u64().expect("a number");
    assert!(bytes("bytes_in") > 1 << 20 && bytes("bytes_out") > 1 << 20, "{line}");
}

#[test]
fn messages_pass_both_ways_over_tls() {
    let (origin, authority) = (Origin::scripted(echo), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let connector = TlsConnector::from(TlsClientConfig::new(&authority, None).offering(&["h2"]).config());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(in_time("the conversation ends", async {
        let socket = tokio::net::TcpStream::connect(gateway.address()).await.expect("a connection");
        let stream = connector.connect("a.test".try_into().expect("a name"), socket).await.expect("a handshake");
        let (sender, connection) = client::handshake(stream).await.expect("HTTP/2 is spoken");
        tokio::spawn(connection);
        let request = connect("https://a.test/live", "websocket");
        let (answer, send) = announced(&sender).await.send_request(request, false).expect("sent");
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.status(), 200);
        let mut socket = WebSocketStream::from_raw_socket(pipe(answer.into_body(), send), Role::Client, None).await;
        socket.send(Message::text("hello")).await.expect("an open socket");
        assert_eq!(socket.next().await.expect("an echo").expect("an open socket"), Message::text("hello"));
    }));
    assert_eq!(origin.last().header("x-forwarded-proto"), Some("https"));
}

#[test]
fn a_real_browser_opens_one_in_its_connection() {
    const PAGE: &str = "<!doctype html><script>\
        const socket = new WebSocket(`wss://${location.host}/live`);\
        socket.onopen = () => socket.send('hello from the page');\
        socket.onmessage = ({data}) => { socket.close(4001, 'enough'); fetch(`/told?${encodeURIComponent(data)}`); };\
        socket.onclose = ({code, wasClean}) => fetch(`/closed?${code},${wasClean}`);\
        </script>";
    let origin = Origin::scripted(|mut exchange| {
        while let Some(received) = exchange.request() {
            if received.target == "/live" {
                return echo_to(&received, exchange);
            }
            let length = PAGE.len();
            exchange
                .write(format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{PAGE}"));
        }
    });
    let gateway = simple(&origin, &CertificateAuthority::generate());
    let _browser = Chromium::visits(&format!("https://a.test:{}/", gateway.address().port()));
    let is_told = |target: &str| origin.requests().iter().any(|request| request.target == target);
    eventually("the page gets its echo", || is_told("/told?hello%20from%20the%20page"));
    eventually("the page sees its end", || is_told("/closed?4001,true"));
    let line = gateway.log_line("/live");
    assert_eq!((&line["protocol"], &line["status"]), (&"h2".into(), &101.into()), "{line}");
}

#[test]
fn the_application_sees_the_request_of_http1_and_the_client_an_answer_of_http2() {
    let origin = accepting(|_| ());
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let mut request = connect("http://a:80/live?x=1", "WebSocket");
        request.headers_mut().insert("sec-websocket-key", "bXkgb3duIGtleSwgMTYgYg==".parse().expect("a value"));
        let (answer, _send) = announced(&sender).await.send_request(request, false).expect("sent");
        let answer = answer.await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["sec-websocket-protocol"]),
            (200, &"chat".parse().expect("a value"))
        );
        assert_eq!(answer.headers()["x-own"], "1");
        for name in ["sec-websocket-accept", "upgrade", "connection", "content-length", "transfer-encoding"] {
            assert!(!answer.headers().contains_key(name), "{name}");
        }
    });
    let received = origin.last();
    assert!(received.head.starts_with("GET /live?x=1 HTTP/1.1\r\n"), "{}", received.head);
    for (name, value) in [
        ("host", "a:80"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "chat"),
        ("origin", "https://a.test"),
        ("x-real-ip", "127.0.0.1"),
    ] {
        assert_eq!(received.header(name), Some(value), "{name}");
    }
    assert!(received.headers.lists("connection", "upgrade"));
    let key = received.header("sec-websocket-key").expect("a key");
    assert!(key.len() == 24 && key.ends_with("==") && key != "bXkgb3duIGtleSwgMTYgYg==", "{key}");
}

#[test]
fn each_tunnel_has_a_key_of_its_own() {
    let origin = accepting(|_| ());
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let _tunnels = [opened(&sender).await, opened(&sender).await];
    });
    let keys: Vec<_> = origin.requests().iter().map(|it| it.header("sec-websocket-key").map(str::to_owned)).collect();
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn an_application_that_speaks_http2_is_asked_over_http1() {
    let origin = Origin::scripted(echo);
    let gateway =
        Gateway::start(format!("upstream: app\nupstreams: {{app: {{servers: ['{}'], http2: true}}}}", origin.url()));
    over_http2(&gateway, async |sender| converse(&sender).await);
}

#[test]
fn another_answer_passes_as_it_is_and_the_connection_goes_on() {
    let origin = Origin::answering(|received| match received.target.as_str() {
        "/gone" => Answer::new(302, &[("Location", "/login")], ""),
        _ => Answer::new(401, &[("WWW-Authenticate", "Basic")], "who?"),
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let sender = announced(&sender).await;
        let refused = ask(&sender, connect("http://a/live", "websocket"), Some(Bytes::from_static(b"early"))).await;
        let refused = refused.expect("an answer");
        assert_eq!((refused.status.as_u16(), refused.body.as_slice()), (401, b"who?".as_slice()));
        let moved = ask(&sender, connect("http://a/gone", "websocket"), None).await.expect("an answer");
        assert_eq!(moved.status, 302);
        assert_eq!(
            ask(&sender, Request::get("http://a/").body(()).expect("a request"), None).await.expect("an answer").status,
            401
        );
    });
    assert_eq!(gateway.log_line("/live")["status"], 401);
}

/// What a client is answered that asks for a tunnel to such an application.
#[track_caller]
fn check_no_tunnel(answer: impl Fn(&str) -> String + Send + Sync + 'static, why: &str) {
    let origin = Origin::scripted(move |mut exchange| {
        let Some(received) = exchange.request() else { return };
        exchange.write(answer(&derive_accept_key(received.header("sec-websocket-key").expect("a key").as_bytes())));
        exchange.client_has_left();
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let status = over_http2(&gateway, async |sender| asked(&sender).await.0.status());
    assert_eq!(status, 502, "{why}");
    assert_eq!(gateway.log_line("/live")["error"], why);
}

#[test]
fn what_would_pass_for_a_tunnel_and_is_none_is_502() {
    let not_switched = "the application answered without switching protocols";
    check_no_tunnel(|_| "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".into(), not_switched);
    check_no_tunnel(|_| "HTTP/1.1 204 No Content\r\n\r\n".into(), not_switched);
    let switched = |upgrade: &str, rest: &str| {
        format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n{rest}\r\nsecret")
    };
    let accept = |accept: &str| format!("Sec-WebSocket-Accept: {accept}\r\n");
    let unasked = "the application switched to a protocol that the client did not ask for";
    check_no_tunnel(move |right| switched("irc", &accept(right)), unasked);
    let handshake = "the application's Sec-WebSocket-Accept does not match the key";
    check_no_tunnel(move |_| switched("websocket", ""), handshake);
    check_no_tunnel(move |_| switched("websocket", &accept(&derive_accept_key(b"other"))), handshake);
    check_no_tunnel(move |right| switched("websocket", &accept(right).repeat(2)), handshake);
}

#[test]
fn a_denial_never_looks_like_an_open_tunnel() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\ndeny_response: {{status: 200, body: later}}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}",
        origin.url()
    ));
    assert_eq!(gateway.get("/").send().text(), "origin");
    assert_eq!(gateway.get("/").send().text(), "later");
    over_http2(&gateway, async |sender| {
        assert_eq!(asked(&sender).await.0.status(), 403);
        let mut call = connect("http://a/live", "websocket");
        call.headers_mut().insert("content-type", "application/grpc".parse().expect("a value"));
        let (answer, _send) = announced(&sender).await.send_request(call, false).expect("sent");
        assert_eq!(answer.await.expect("an answer").status(), 403);
    });
    assert_eq!(origin.count(), 1);
}
