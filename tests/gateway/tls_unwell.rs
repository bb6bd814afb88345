//! TLS that fails: renewed, wrong and expired certificates, and handshakes that do not finish.

use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{
    CertificateAuthority, Gateway, Origin, RawClient, StopOnDrop, Stopwatch, TlsClientConfig, certificate, eventually,
};
use crate::tls::{gateway, simple};

#[test]
fn a_certificate_is_renewed_under_load_without_a_failed_request() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let address = gateway.address();
    let mut standing = TlsClientConfig::new(&authority, None).connect(address, "a.test");
    let (over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _over = StopOnDrop(&over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    let mut client = TlsClientConfig::new(&authority, None).connect(address, "a.test");
                    assert_eq!([client.get("a.test").status, client.get("a.test").status], [200, 200]);
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..3 {
            let renewed = authority.server(&["a.test"]);
            gateway.write("0.key", &renewed.key);
            gateway.write("0.pem", &renewed.cert);
            eventually("the new certificate is shown", || {
                let client = TlsClientConfig::new(&authority, None).connect(address, "a.test");
                client.certificate() == certificate(&renewed.cert)
            });
            let before = asked.load(Ordering::SeqCst);
            eventually("the load goes on", || asked.load(Ordering::SeqCst) > before + 3);
        }
    });
    assert_eq!(standing.get("a.test").status, 200);
}

#[test]
fn a_key_renewed_before_its_certificate_is_waited_for() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let served = [authority.server(&["a.test"])];
    let gateway = gateway(&origin, &authority, &served, "log: {level: debug, format: json}");
    let shown = || TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test").certificate();
    let waits = || gateway.log_messages().iter().filter(|line| line.contains("yet to be renewed")).count();
    let mut before = certificate(&served[0].cert);
    // A machine that is slow enough loses patience meanwhile.
    let renewed_unnoticed = (0..10).any(|_| {
        let (renewed, told, waited) = (authority.server(&["a.test"]), gateway.failed_reloads(), waits());
        gateway.write("0.key", &renewed.key);
        eventually("the key is read", || waits() > waited);
        assert_eq!(shown(), before);
        gateway.write("0.pem", &renewed.cert);
        before = certificate(&renewed.cert);
        eventually("the new certificate is shown", || shown() == before);
        assert!(gateway.failed_reloads() <= told + 1);
        gateway.failed_reloads() == told
    });
    assert!(renewed_unnoticed, "{:?}", gateway.log_messages());
}

#[test]
fn a_key_that_does_not_fit_is_told_with_its_place_and_changes_nothing() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let served = authority.server(&["a.test"]);
    let gateway = gateway(&origin, &authority, std::slice::from_ref(&served), "");
    gateway.write("0.key", &authority.server(&["a.test"]).key);
    eventually("the mistake is told", || gateway.failed_reloads() > 0);
    let told = gateway.stderr().join("\n");
    assert!(told.contains("portcullis.yaml:2:73: ") && told.contains("does not belong"), "{told}");
    assert!(!told.contains("PRIVATE"), "{told}");
    let mut client = TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test");
    assert_eq!(client.certificate(), certificate(&served.cert));
    assert_eq!(client.get("a.test").status, 200);
    // Putting it right is a change again.
    let reloads = gateway.reloads();
    gateway.write("0.key", &served.key);
    eventually("it is read again", || gateway.reloads() > reloads);
    assert_eq!(gateway.failed_reloads(), 1);
}

#[test]
fn tls_comes_and_goes_on_an_address_without_dropping_a_connection() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let address = gateway.address();
    let caller = TlsClientConfig::new(&authority, None);
    let mut secret = caller.connect(address, "a.test");
    assert_eq!(secret.get("a.test").status, 200);
    gateway.reload(format!("listen: 127.0.0.1:0\nupstream: {}", origin.url()));
    let mut clear = RawClient::connect(address);
    assert_eq!(gateway.get("/").send_on(&mut clear).status, 200);
    assert_eq!(secret.get("a.test").status, 200);
    let tls = "tls: {certificates: [{cert: 0.pem, key: 0.key}]}";
    gateway.reload(format!("listen: [{{address: 127.0.0.1:0, {tls}}}]\nupstream: {}", origin.url()));
    assert_eq!(caller.connect(address, "a.test").get("a.test").status, 200);
    assert_eq!(gateway.get("/").send_on(&mut clear).status, 200);
    assert_eq!(secret.get("a.test").status, 200);
    assert!(
        gateway.log_messages().iter().any(|line| line.contains(&format!("other TLS on {address}"))),
        "{:?}",
        gateway.log_messages()
    );
}

#[test]
fn an_expired_certificate_is_warned_of_and_served() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = gateway(&origin, &authority, &[authority.expired("a.test")], "");
    assert!(
        gateway.log_messages().iter().any(|line| line.contains("has expired on 2020-01-01")),
        "{:?}",
        gateway.log_messages()
    );
    assert!(TlsClientConfig::new(&authority, None).try_connect(gateway.address(), "a.test").is_err());
}

/// After how long the gateway closes the connection of a client that sent this.
#[track_caller]
fn closed_after(gateway: &Gateway, said: &[u8]) -> Duration {
    let waited = Stopwatch::start();
    let mut client = gateway.connect();
    client.send(said);
    assert!(!String::from_utf8_lossy(&client.rest()).contains("HTTP/"));
    waited.elapsed()
}

#[test]
fn silent_and_half_handshakes_are_closed_by_the_header_timeout_and_told_to_nobody() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let certified = [authority.server(&["a.test"])];
    let gateway = gateway(&origin, &authority, &certified, "server: {timeouts: {header: 700ms}}");
    let half_a_hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    for said in [&b""[..], b"\x16", half_a_hello] {
        let waited = closed_after(&gateway, said);
        assert!(waited >= Duration::from_millis(600) && waited < Duration::from_secs(5), "{said:?}: {waited:?}");
    }
    for said in [&b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0xff; 64]] {
        let waited = closed_after(&gateway, said);
        assert!(waited < Duration::from_millis(600), "{said:?}: {waited:?}");
    }
    // Through the handshake, and then silent.
    let waited = Stopwatch::start();
    let mut client = TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test");
    assert!(client.ends());
    assert!(waited.elapsed() < Duration::from_secs(5), "{:?}", waited.elapsed());
    assert_eq!(TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test").get("a.test").status, 200);
    let told = gateway.log_messages();
    assert!(!told.iter().any(|line| line.contains("TLS handshake")), "{told:?}");
}

#[test]
fn a_handshake_under_way_counts_as_a_connection_and_holds_up_no_other() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let certified = [authority.server(&["a.test"])];
    let rest = "admin: {address: 127.0.0.1:0}\nserver: {max_connections_per_client: 20}";
    let gateway = gateway(&origin, &authority, &certified, rest);
    let mut hanging: Vec<TcpStream> =
        (0..19).map(|_| TcpStream::connect(gateway.address()).expect("a connection")).collect();
    // Each core accepts its own, when it comes to it.
    eventually("all of them are accepted", || gateway.connections() == hanging.len());
    let caller = TlsClientConfig::new(&authority, None);
    let mut client = caller.connect(gateway.address(), "a.test");
    assert_eq!(client.get("a.test").status, 200);
    assert!(caller.try_connect(gateway.address(), "a.test").is_err());
    hanging.pop();
    eventually("there is room again", || caller.try_connect(gateway.address(), "a.test").is_ok());
    assert!(hanging[0].set_nonblocking(true).is_ok() && hanging[0].read(&mut [0]).is_err(), "it is still there");
}
