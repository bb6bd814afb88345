//! A PROXY header before TLS, on one listener.

use std::io;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::ClientConnection;

use crate::proxy_protocol::{V4, telling, v1, v2};
use crate::support::{CertificateAuthority, Gateway, Origin, RawClient, TlsClient, TlsClientConfig};

const TOLD: &str = "203.0.113.9 | 203.0.113.9";

/// A gateway that wants a header, then TLS as `a.test`, and with `client_ca` a certificate.
fn gateway(origin: &Origin, authority: &CertificateAuthority, client_ca: Option<&CertificateAuthority>) -> Gateway {
    let certified = authority.server(&["a.test"]);
    let clients = client_ca.map_or("", |_| ", client_ca: clients.pem");
    let config = format!(
        "listen: {{address: 127.0.0.1:0, proxy_protocol: true, tls: {{certificates: [{{cert: site.pem, key: site.key}}]{clients}}}}}\n\
         upstream: {}\nclient_ip: {{trusted_proxies: [127.0.0.1]}}",
        origin.url()
    );
    let clients = client_ca.map_or("", CertificateAuthority::pem);
    Gateway::with_files(
        config,
        &[("site.pem", &certified.cert), ("site.key", &certified.key), ("clients.pem", clients)],
    )
}

/// Says this, and shakes hands behind it.
fn behind(header: &[u8], caller: &TlsClientConfig, gateway: &Gateway) -> io::Result<TlsClient> {
    let mut socket = TcpStream::connect(gateway.address())?;
    socket.write_all(header)?;
    caller.handshake(socket, "a.test")
}

#[test]
fn the_client_is_the_one_of_the_header_and_its_connection_is_secure() {
    let (origin, authority) = (telling(), CertificateAuthority::generate());
    let gateway = gateway(&origin, &authority, None);
    for protocol in [&[][..], &["http/1.1"]] {
        let caller = TlsClientConfig::new(&authority, None).offering(protocol);
        for header in [v1("203.0.113.9"), v2(0x21, 0x11, V4)] {
            let mut client = behind(&header, &caller, &gateway).expect("a handshake");
            assert_eq!([client.get("a.test").text(), client.get("a.test").text()], [TOLD, TOLD]);
            assert_eq!(origin.last().header("x-forwarded-proto"), Some("https"));
        }
    }
    let logged = gateway.log_line("/");
    assert_eq!([&logged["client"], &logged["peer"]], ["203.0.113.9", "203.0.113.9"]);
}

#[test]
fn the_hello_may_come_with_the_header() {
    let (origin, authority) = (telling(), CertificateAuthority::generate());
    let gateway = gateway(&origin, &authority, None);
    let caller = TlsClientConfig::new(&authority, None);
    for header in [v1("203.0.113.9"), v2(0x21, 0x11, V4)] {
        let name = "a.test".try_into().expect("a name");
        let mut session = ClientConnection::new(Arc::clone(&caller.config()), name).expect("a session");
        let mut said = header;
        session.write_tls(&mut said).expect("it has something to say");
        let mut socket = TcpStream::connect(gateway.address()).expect("a connection");
        socket.write_all(&said).expect("the gateway listens");
        while session.is_handshaking() {
            session.complete_io(&mut socket).expect("a handshake");
        }
        assert!(!session.is_handshaking());
    }
}

#[test]
fn clients_show_their_certificate_behind_the_header() {
    let (origin, authority, clients) = (telling(), CertificateAuthority::generate(), CertificateAuthority::generate());
    let gateway = gateway(&origin, &authority, Some(&clients));
    let header = v2(0x21, 0x11, V4);
    let asked = |caller: &TlsClientConfig, host: &str| {
        let response = behind(&header, caller, &gateway).ok()?.try_get(host)?;
        Some((response.status, response.text()))
    };
    let caller = TlsClientConfig::new(&authority, Some(&clients.client()));
    assert_eq!(asked(&caller, "a.test"), Some((200, TOLD.to_owned())));
    assert_eq!(asked(&caller, "b.test").map(|(status, _)| status), Some(421));
    assert_eq!(asked(&TlsClientConfig::new(&authority, None), "a.test"), None);
    assert_eq!(origin.count(), 1);
}

#[test]
fn neither_goes_without_the_other_nor_the_other_way_round() {
    let (origin, authority) = (telling(), CertificateAuthority::generate());
    let gateway = gateway(&origin, &authority, None);
    let caller = TlsClientConfig::new(&authority, None);
    assert!(caller.try_connect(gateway.address(), "a.test").is_err(), "no header");
    let mut clear = RawClient::connect(gateway.address());
    clear.send(v1("203.0.113.9")).send(gateway.get("/").bytes());
    assert!(!String::from_utf8_lossy(&clear.rest()).contains("HTTP/"), "no TLS");
    let mut twice = behind(&v1("203.0.113.9"), &caller, &gateway).expect("a handshake");
    twice.send(v1("203.0.113.10"));
    assert_eq!(twice.response().status, 400);
    assert_eq!(origin.count(), 0);
}
