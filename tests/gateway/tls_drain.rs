//! Draining with TLS and the PROXY protocol: streams under way are finished, idle connections are closed at once.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use h2::client;
use h2::client::SendRequest;
use http::Request;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::http2::ask;
use crate::support::{Answer, Background, CertificateAuthority, Gateway, Origin, TlsClientConfig, eventually, in_time};
use crate::tls::simple;
use crate::tls_resting::rest;

/// Answers at once, or after a while what is asked for at `/slow`.
fn origin() -> Origin {
    Origin::answering(|received| {
        let answer = Answer::ok("origin");
        if received.target == "/slow" { answer.after(Duration::from_secs(1)) } else { answer }
    })
}

/// HTTP/2 in TLS, in the background; the handle is of the connection itself.
fn speak(
    background: &Background,
    gateway: &Gateway,
    authority: &CertificateAuthority,
) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let connector = TlsConnector::from(TlsClientConfig::new(authority, None).offering(&["h2"]).config());
    let address = gateway.address();
    background.block_on(in_time("the conversation ends", async {
        let socket = tokio::net::TcpStream::connect(address).await.expect("a connection");
        let stream = connector.connect("a.test".try_into().expect("a name"), socket).await.expect("a handshake");
        let (sender, connection) = client::handshake(stream).await.expect("HTTP/2 is spoken");
        (sender, tokio::spawn(connection))
    }))
}

fn get(path: &str) -> Request<()> {
    Request::get(format!("https://a.test{path}")).body(()).expect("a request")
}

/// Has five streams under way, and another client asking one request after the other, while `end` ends the gateway.
#[track_caller]
fn check(end: impl FnOnce(&Gateway) -> Option<Gateway>) {
    let (origin, authority) = (origin(), CertificateAuthority::generate());
    let mut gateway = simple(&origin, &authority);
    let background = Background::start();
    let (sender, connection) = speak(&background, &gateway, &authority);
    let slow: Vec<_> = (0..5)
        .map(|_| {
            let sender = sender.clone();
            background.spawn(async move { ask(&sender, get("/slow"), None).await.map(|answered| answered.status) })
        })
        .collect();
    let (busy, busy_connection) = speak(&background, &gateway, &authority);
    let asking = background.spawn(async move {
        let mut answered = 0;
        loop {
            match ask(&busy, get("/"), None).await {
                Ok(_) => answered += 1,
                Err(_) => return answered,
            }
        }
    });
    let count = |path: &str| origin.heads().iter().filter(|head| head.target == path).count();
    eventually("all is under way", || count("/slow") == 5 && count("/") > 20);

    let next = end(&gateway);

    for answer in slow {
        let status = background.block_on(in_time("it is answered", answer)).expect("no panic").expect("an answer");
        assert_eq!(status, 200);
    }
    let answered: usize = background.block_on(in_time("no more are answered", asking)).expect("no panic");
    // A request without an answer was not processed: the client may retry it elsewhere.
    assert_eq!(count("/"), answered);
    for connection in [connection, busy_connection] {
        // The client sees a close or a reset, depending on which side closes first.
        let _ = background.block_on(in_time("the connection ends", connection)).expect("no panic");
    }
    assert_eq!(gateway.ended().code(), Some(0));
    if let Some(next) = next {
        let (sender, _) = speak(&background, &next, &authority);
        assert_eq!(background.block_on(ask(&sender, get("/"), None)).expect("an answer").status, 200);
    }
}

#[test]
fn streams_under_way_are_finished_and_none_is_lost() {
    check(|gateway| {
        gateway.signal("TERM");
        None
    });
}

#[test]
fn streams_under_way_are_finished_by_the_process_that_began_them() {
    check(|gateway| Some(gateway.successor()));
}

/// Far longer than anybody waits here for the gateway to end.
const LONG: &str = "server: {timeouts: {header: 10m, keepalive: 10m, drain: 10m}}";

#[test]
fn handshakes_and_headers_that_do_not_come_hold_up_no_end() {
    let (origin, authority) = (origin(), CertificateAuthority::generate());
    let certified = authority.server(&["a.test"]);
    let tls = "tls: {certificates: [{cert: 0.pem, key: 0.key}]}";
    let config = format!(
        "listen: [{{address: 127.0.0.1:0, {tls}}}, {{address: 127.0.0.1:0, proxy_protocol: true}}, \
         {{address: 127.0.0.1:0, proxy_protocol: true, {tls}}}]\nupstream: {}\n\
         client_ip: {{trusted_proxies: [127.0.0.1]}}\nadmin: {{address: 127.0.0.1:0}}\n{LONG}",
        origin.url()
    );
    let mut gateway = Gateway::with_files(config, &[("0.pem", &certified.cert), ("0.key", &certified.key)]);
    let half_a_hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice();
    let header = b"PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\r\n".as_slice();
    let [tls, proxy, both] = gateway.addresses()[..] else { panic!("three listeners") };
    let said = [
        (tls, &b""[..]),
        (tls, half_a_hello),
        (proxy, b""),
        (proxy, b"PROXY TCP4"),
        (proxy, header),
        (both, header),
        (both, &[header, half_a_hello].concat()),
    ];
    let standing: Vec<TcpStream> = said
        .into_iter()
        .map(|(address, said)| {
            let mut socket = TcpStream::connect(address).expect("a connection");
            socket.write_all(said).expect("the gateway listens");
            socket
        })
        .collect();
    eventually("all stand", || gateway.connections() == standing.len());
    gateway.signal("TERM");
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn connections_at_rest_hold_up_no_end() {
    let (origin, authority) = (origin(), CertificateAuthority::generate());
    let mut gateway = crate::tls::gateway(&origin, &authority, &[authority.server(&["a.test"])], LONG);
    let mut client = TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test");
    assert_eq!(client.get("a.test").status, 200);
    let background = Background::start();
    let (sender, connection) = speak(&background, &gateway, &authority);
    assert_eq!(background.block_on(ask(&sender, get("/"), None)).expect("an answer").status, 200);
    rest();
    gateway.signal("TERM");
    assert!(client.gets_close_notify());
    let _ = background.block_on(in_time("the connection ends", connection)).expect("no panic");
    assert_eq!(gateway.ended().code(), Some(0));
}
