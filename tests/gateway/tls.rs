//! TLS with real clients: certificate, version, protocol, and what the application is told.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use h2::client;
use http::Request;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::Message;

use crate::http2::ask;
use crate::support::{Answer, CertificateAuthority, Certified, Gateway, Origin, TlsClientConfig, certificate, in_time};
use crate::tls_resting::rest;
use crate::upgrade::echo;

/// A gateway with TLS in front of an application, and its authority. `certified` becomes `0.pem`, `0.key` and so on.
pub(crate) fn gateway(
    origin: &Origin,
    authority: &CertificateAuthority,
    certified: &[Certified],
    rest: &str,
) -> Gateway {
    let mut files = vec![("ca.pem".to_owned(), authority.pem().to_owned())];
    let mut pairs = Vec::new();
    for (number, Certified { cert, key }) in certified.iter().enumerate() {
        files.push((format!("{number}.pem"), cert.clone()));
        files.push((format!("{number}.key"), key.clone()));
        pairs.push(format!("{{cert: {number}.pem, key: {number}.key}}"));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let tls = format!("tls: {{certificates: [{}]}}", pairs.join(", "));
    let config = format!("listen: [{{address: 127.0.0.1:0, {tls}}}]\nupstream: {}\n{rest}", origin.url());
    Gateway::with_files(config, &files)
}

/// One that is `a.test`.
pub(crate) fn simple(origin: &Origin, authority: &CertificateAuthority) -> Gateway {
    gateway(origin, authority, &[authority.server(&["a.test"])], "")
}

#[test]
fn a_client_that_says_goodbye_behind_its_request_is_answered() {
    let origin = Origin::answering(|_| Answer::ok("late").after(Duration::from_millis(2500)));
    let authority = CertificateAuthority::generate();
    let gateway = simple(&origin, &authority);
    let mut client = TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test");
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    client.finish();
    assert_eq!(client.response().text(), "late");
    assert!(client.gets_close_notify());
}

/// What curl says when it asks `a.test` for `/`.
fn curl(gateway: &Gateway, arguments: &[&str]) -> String {
    let port = gateway.address().port();
    let output = Command::new("curl")
        .args(["-sS", "--cacert"])
        .arg(gateway.path("ca.pem"))
        .args(["--resolve", &format!("a.test:{port}:127.0.0.1"), "-w", " HTTP/%{http_version} %{http_code}"])
        .args(arguments)
        .arg(format!("https://a.test:{port}/"))
        .output()
        .expect("curl is installed");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What openssl says of a connection on which it asks for `/`.
pub(crate) fn s_client(gateway: &Gateway, arguments: &[&str]) -> String {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &gateway.address().to_string(), "-CAfile"])
        .arg(gateway.path("ca.pem"))
        .args(arguments)
        .current_dir(gateway.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is installed");
    let mut stdin = child.stdin.take().expect("piped");
    // Whether it wants to hear this depends on the handshake.
    let _ = stdin.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    let output = child.wait_with_output();
    drop(stdin);
    let output = output.expect("it ends when the gateway closes");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn curl_speaks_both_versions_of_http() {
    let (origin, authority) = (Origin::answering(|_| Answer::ok("hello")), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    assert_eq!(curl(&gateway, &["--http1.1"]), "hello HTTP/1.1 200");
    assert_eq!(curl(&gateway, &["--http2"]), "hello HTTP/2 200");
    assert_eq!(curl(&gateway, &[]), "hello HTTP/2 200");
    assert_eq!(curl(&gateway, &["--no-alpn"]), "hello HTTP/1.1 200");
    assert!(curl(&gateway, &["--http1.0"]).starts_with("hello HTTP/1"));
    assert!(curl(&gateway, &["--http1.1", "--tls-max", "1.2"]).starts_with("hello"));
    let big = "x".repeat(3 << 20);
    std::fs::write(gateway.path("big"), &big).expect("a file");
    let file = format!("@{}", gateway.path("big").display());
    for version in ["--http1.1", "--http2"] {
        assert!(curl(&gateway, &[version, "--data-binary", &file]).starts_with("hello"), "{version}");
        assert_eq!(origin.last().body_length, big.len() as u64);
    }
}

#[test]
fn versions_from_1_2_on_are_spoken() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let said = s_client(&gateway, &[version, "-servername", "a.test"]);
        assert!(said.contains(&format!("New, {name}, Cipher is")), "{said}");
        assert!(said.contains("Verify return code: 0 (ok)") && said.contains("HTTP/1.1 200"), "{said}");
    }
    let said = s_client(&gateway, &["-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"]);
    assert!(said.contains("Cipher is (NONE)"), "{said}");
}

#[test]
fn a_certificate_is_chosen_by_the_name_that_is_asked_for() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let certified =
        [authority.server(&["a.test"]), authority.server(&["*.b.test", "b.test"]), authority.server(&["c.b.test"])];
    let gateway = gateway(&origin, &authority, &certified, "");
    let check = |name: &str, expected: usize| {
        let said = s_client(&gateway, &if name.is_empty() { vec!["-noservername"] } else { vec!["-servername", name] });
        let pem = said.split_inclusive("-----END CERTIFICATE-----").next().expect("a certificate");
        let pem = &pem[pem.find("-----BEGIN").unwrap_or_else(|| panic!("no certificate: {said}"))..];
        assert_eq!(certificate(pem), certificate(&certified[expected].cert), "{name}");
    };
    check("a.test", 0);
    check("b.test", 1);
    check("x.b.test", 1);
    check("X.B.TEST", 1);
    check("c.b.test", 2);
    check("x.c.b.test", 0);
    check("elsewhere.test", 0);
    check("", 0);
}

#[test]
fn the_protocol_is_what_the_two_agree_on() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let caller = TlsClientConfig::new(&authority, None);
    let agreed =
        |offered: &[&str]| caller.offering(offered).try_connect(gateway.address(), "a.test").map(|it| it.protocol());
    assert_eq!(agreed(&["http/1.1", "h2"]).expect("a handshake").as_deref(), Some("h2"));
    assert_eq!(agreed(&["http/1.1"]).expect("a handshake").as_deref(), Some("http/1.1"));
    assert_eq!(agreed(&[]).expect("a handshake"), None);
    assert!(agreed(&["spdy/3"]).is_err());
    // A client that agreed on HTTP/1.1 cannot speak HTTP/2.
    let mut client = caller.offering(&["http/1.1"]).connect(gateway.address(), "a.test");
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    assert_eq!(client.response().status, 505);
    assert!(client.ends());
    assert_eq!(origin.count(), 0);
}

#[test]
fn http2_without_alpn_is_known_by_its_preface() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for protocols in [&[][..], &["h2"]] {
        let connector = TlsConnector::from(TlsClientConfig::new(&authority, None).offering(protocols).config());
        runtime.block_on(in_time("the conversation ends", async {
            let socket = TcpStream::connect(gateway.address()).await.expect("a connection");
            let name = "a.test".try_into().expect("a name");
            let stream = connector.connect(name, socket).await.expect("a handshake");
            let (sender, connection) = client::handshake(stream).await.expect("HTTP/2 is spoken");
            tokio::spawn(connection);
            for _ in 0..3 {
                let request = Request::get("https://a.test/").body(()).expect("a request");
                assert_eq!(ask(&sender, request, None).await.expect("an answer").status, 200);
            }
        }));
    }
    assert_eq!(origin.count(), 6);
}

#[test]
fn the_application_hears_that_the_scheme_is_https() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    curl(&gateway, &["-H", "X-Forwarded-Proto: http"]);
    assert_eq!(origin.last().header("x-forwarded-proto"), Some("https"));
}

#[test]
fn device_cookies_are_secure() {
    let origin = Origin::answering(|_| Answer::new(302, &[("Location", "/account")], ""));
    let authority = CertificateAuthority::generate();
    let known = "routes:\n  - match: POST /*\n    outcome: {success: {status: 302}}\n    known_clients: {of: param.u, by: cookie}\n    \
                 limits: [{key: client_ip, rate: 9/hour, unless: [known_client]}]\n";
    let gateway = gateway(&origin, &authority, &[authority.server(&["a.test"])], known);
    let said = curl(&gateway, &["-d", "u=alice", "-D", "-"]);
    let cookie = said.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie: portcullis_device_"));
    assert!(cookie.is_some_and(|cookie| cookie.ends_with("; Secure")), "{said}");
}

#[test]
fn websockets_work() {
    let (origin, authority) = (Origin::scripted(echo), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let stream = TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test").into_stream();
    let (mut socket, response) = tungstenite::client("wss://a.test/live", stream).expect("a WebSocket");
    assert_eq!(response.status(), 101);
    for length in [1, 70_000, 300_000] {
        let text = "x".repeat(length);
        socket.send(Message::text(text.as_str())).expect("an open socket");
        assert_eq!(socket.read().expect("an echo"), Message::text(text));
    }
    assert_eq!(origin.last().header("x-forwarded-proto"), Some("https"));
}

#[test]
fn draining_finishes_what_is_under_way_and_says_goodbye() {
    let origin = Origin::answering(|_| Answer::ok("slow").after(Duration::from_secs(1)));
    let authority = CertificateAuthority::generate();
    let mut gateway = simple(&origin, &authority);
    let caller = TlsClientConfig::new(&authority, None);
    let mut idle = caller.connect(gateway.address(), "a.test");
    assert_eq!(idle.get("a.test").status, 200);
    let mut resting = caller.connect(gateway.address(), "a.test");
    assert_eq!(resting.get("a.test").status, 200);
    rest();
    assert_eq!(idle.get("a.test").status, 200);
    let mut busy = caller.connect(gateway.address(), "a.test");
    busy.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    crate::support::eventually("the request is under way", || origin.count() == 4);
    gateway.signal("TERM");
    assert_eq!(busy.response().text(), "slow");
    assert!(busy.gets_close_notify() && idle.gets_close_notify() && resting.gets_close_notify());
    assert_eq!(gateway.ended().code(), Some(0));
}
