//! TLS clients that are idle or do not read are treated like others, and cost little more memory.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::streaming::{BUSY, kib_for_each};
use crate::support::{CertificateAuthority, Origin, TlsClientConfig, eventually};
use crate::tls::{gateway, simple};

/// Waits until nothing is kept of a connection that is not needed to go on with it.
pub(crate) fn rest() {
    thread::sleep(Duration::from_millis(500));
}

#[test]
fn a_connection_that_has_rested_is_served_again_as_often_as_it_likes() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let mut client = TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test");
    for _ in 0..3 {
        assert_eq!([client.get("a.test").status, client.get("a.test").status], [200, 200]);
        rest();
    }
    // A head that is begun before a rest, and ends after it.
    client.send("GET / HTTP/1.1\r\n");
    rest();
    client.send("Host: a.test\r\n\r\n");
    assert_eq!(client.response().status, 200);
    // Several at once after a rest: none of them is left behind.
    rest();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".repeat(3));
    for _ in 0..3 {
        assert_eq!(client.response().status, 200);
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_connection_that_has_rested_is_told_goodbye_when_its_time_is_over() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let certified = [authority.server(&["a.test"])];
    let gateway = gateway(&origin, &authority, &certified, "server: {timeouts: {keepalive: 700ms}}");
    let mut client = TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test");
    assert_eq!(client.get("a.test").status, 200);
    assert!(client.gets_close_notify());
}

#[test]
fn resting_connections_take_little() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let caller = TlsClientConfig::new(&authority, None);
    let each = kib_for_each(&gateway, || {
        let mut client = caller.connect(gateway.address(), "a.test");
        assert_eq!(client.get("a.test").status, 200);
        client
    });
    assert!(each <= RESTING, "{each} KiB");
}

/// What a connection may take that rests, in KiB: a handshake alone takes more.
const RESTING: u64 = 32;

const LARGE: usize = 100_000_000;

/// Answers without end, and counts how often it was left before that.
fn endless(left: &Arc<AtomicUsize>) -> Origin {
    let left = Arc::clone(left);
    Origin::scripted(move |mut exchange| {
        exchange.request();
        exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
        let block = vec![b'x'; 64 * 1024];
        if !(0..LARGE / block.len()).all(|_| exchange.write(&block)) {
            left.fetch_add(1, Ordering::SeqCst);
        }
    })
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let left = Arc::default();
    let (origin, authority) = (endless(&left), CertificateAuthority::generate());
    let certified = [authority.server(&["a.test"])];
    let gateway = gateway(&origin, &authority, &certified, "server: {timeouts: {body_idle: 400ms}}");
    let mut client = TlsClientConfig::new(&authority, None).connect(gateway.address(), "a.test");
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    eventually("the application is left", || left.load(Ordering::SeqCst) == 1);
    let mut got = Vec::new();
    // Cut short, not ended: no client takes this for the whole answer.
    assert!(client.into_stream().read_to_end(&mut got).is_err());
    assert!(got.len() < LARGE, "{}", got.len());
}

#[test]
fn clients_that_do_not_read_fill_no_memory() {
    let (origin, authority) = (endless(&Arc::default()), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let caller = TlsClientConfig::new(&authority, None);
    let each = kib_for_each(&gateway, || {
        let mut client = caller.connect(gateway.address(), "a.test").into_stream();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("a request is taken");
        client.read_exact(&mut [0; 12]).expect("an answer begins");
        client
    });
    assert!(each <= BUSY, "{each} KiB");
}
