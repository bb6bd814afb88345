//! What clients cost in memory that are many, slow or sly: `cargo test --test gateway memory:: -- --ignored --nocapture
//! --test-threads 1`. Each test prints what it has found, and fails where that is more than is promised.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use crate::bodies::gzip;
use crate::support::{Answer, CertificateAuthority, Gateway, Origin, Stopwatch, TlsClient, TlsClientConfig};
use crate::tls;

/// Raises the bound on descriptors as far as the system allows, and says how many connections a gateway takes then, at
/// most `wanted`.
pub(crate) fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("as many as the system allows");
    // The gateway keeps some of them for its own side, and the clients of a test are not all that ask.
    let most = limit.maximum.map_or(usize::MAX, |most| usize::try_from(most).expect("a number of files"));
    wanted.min(most - (most / 2).min(4096) - 200)
}

/// One request on each of many connections, which then rest. KiB that each has taken once the rush is over: after some
/// seconds, in which others ask something now and then.
fn kib_of_the_idle<C>(gateway: &Gateway, count: usize, mut connect: impl FnMut() -> C) -> (Vec<C>, f64) {
    let first = connect();
    let before = gateway.resident_kib();
    let mut clients = vec![first];
    clients.extend((0..count).map(|_| connect()));
    let taken = settled(gateway, || drop(connect())).saturating_sub(before);
    let number = |number: u64| f64::from(u32::try_from(number).expect("less than a TiB"));
    (clients, number(taken) / number(count as u64))
}

/// Resident memory once it stays the same, while others ask something now and then.
fn settled(gateway: &Gateway, mut ask: impl FnMut()) -> u64 {
    crate::support::settled(4, Duration::from_millis(750), || {
        ask();
        gateway.resident_kib()
    })
}

/// What one idle connection may take, in KiB.
const IDLE: f64 = 8.0;

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn idle_connections_are_printed() {
    let most = connections(10_000);
    for count in [1000, most] {
        let origin = Origin::start();
        let gateway = Gateway::start(format!(
            "upstream: {}\nlog: {{requests: false}}\nserver: {{timeouts: {{keepalive: 600s}}}}",
            origin.url()
        ));
        let (mut clients, each) = kib_of_the_idle(&gateway, count, || {
            let mut client = gateway.connect();
            assert_eq!(gateway.get("/").send_on(&mut client).status, 200);
            client
        });
        println!("{count} idle connections: {each:.1} KiB each");
        assert!(each <= IDLE, "{each} KiB");
        assert!(clients.iter_mut().step_by(100).all(|client| gateway.get("/").send_on(client).status == 200));
    }
}

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn idle_connections_with_tls_are_printed() {
    let most = connections(10_000);
    for count in [1000, most] {
        let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
        let certified = [authority.server(&["a.test"])];
        let rest = "log: {requests: false}\nserver: {timeouts: {keepalive: 600s}}";
        let gateway = tls::gateway(&origin, &authority, &certified, rest);
        let caller = TlsClientConfig::new(&authority, None);
        let (mut clients, each): (Vec<TlsClient>, f64) = kib_of_the_idle(&gateway, count, || {
            let mut client = caller.connect(gateway.address(), "a.test");
            assert_eq!(client.get("a.test").status, 200);
            client
        });
        println!("{count} idle connections with TLS: {each:.1} KiB each");
        assert!(each <= IDLE_WITH_TLS, "{each} KiB");
        assert!(clients.iter_mut().step_by(100).all(|client| client.get("a.test").status == 200));
    }
}

/// The same with TLS: its keys, and the buffer that it reads into.
const IDLE_WITH_TLS: f64 = 16.0;

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn half_sent_heads_are_printed() {
    let count = connections(10_000);
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlog: {{requests: false}}\nserver: {{timeouts: {{header: 120s}}}}",
        origin.url()
    ));
    let (clients, each) = kib_of_the_idle(&gateway, count, || {
        let mut client = gateway.connect();
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\nX-Slow: aaaa");
        client
    });
    println!("{count} half-sent heads: {each:.1} KiB each");
    assert!(each <= HALF_A_HEAD, "{each} KiB");
    assert_eq!(gateway.get("/").status(), 200);
    drop(clients);
}

/// What a connection may take in the middle of a head, in KiB.
const HALF_A_HEAD: f64 = 32.0;

const READERS: usize = 1000;
const LARGE: usize = 20 << 20;

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn slow_readers_of_large_answers_are_printed() {
    connections(READERS);
    let origin = Origin::scripted(|mut exchange| {
        while let Some(received) = exchange.request() {
            let length = if received.target == "/large" { LARGE } else { 5 };
            let block = vec![b'x'; length.min(64 * 1024)];
            exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"));
            if !(0..length / block.len()).all(|_| exchange.write(&block)) {
                return;
            }
        }
    });
    let gateway = Gateway::start(format!("upstream: {}\nlog: {{requests: false}}", origin.url()));
    assert_eq!(gateway.get("/").status(), 200);
    let before = gateway.resident_kib();
    let request = gateway.get("/large").bytes();
    let mut readers: Vec<TcpStream> = (0..READERS)
        .map(|_| {
            let mut reader = reader(gateway.address());
            reader.write_all(&request).expect("a request is taken");
            reader
        })
        .collect();
    // A few hundred bytes a second each, for some seconds.
    let (read, mut slowest) = (Stopwatch::start(), Duration::ZERO);
    let mut got = 0;
    while read.elapsed() < Duration::from_secs(15) {
        for reader in &mut readers {
            got += reader.read(&mut [0; 512]).expect("a client that reads is not cut off");
        }
        let asked = Stopwatch::start();
        assert_eq!(gateway.get("/").status(), 200);
        slowest = slowest.max(asked.elapsed());
        thread::sleep(Duration::from_millis(200));
    }
    let (now, peak) = (gateway.resident_kib() - before, gateway.peak_kib() - before);
    println!(
        "{READERS} slow readers of {} MB: {} MiB, {} MiB at the most; each has read {} bytes, others waited {slowest:?} at the most",
        LARGE >> 20,
        now / 1024,
        peak / 1024,
        got / READERS
    );
    assert!(peak / READERS as u64 <= SLOW, "{peak} KiB");
}

/// A client with little room for what it does not read.
pub(crate) fn reader(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(16 * 1024).expect("a size");
    socket.connect(&address.into()).expect("the gateway accepts connections");
    socket.into()
}

/// What a connection may take when its client does not keep up, in KiB.
const SLOW: u64 = 128;

const BOMBS: usize = 100;

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn compressed_bombs_are_printed() {
    let bomb = gzip(&"x".repeat(50 << 20));
    let origin = Origin::answering({
        let bomb = bomb.clone();
        move |_| Answer::new(200, &[("Content-Encoding", "gzip"), ("Content-Type", "text/html")], &bomb)
    });
    let gateway = Gateway::start(format!(
        "upstream: {}
log: {{requests: false}}
routes:
  - match: /
    outcome: {{failure: {{body: invalid}}}}
    limits:
      - {{name: user, key: param.user, rate: 100000/hour}}
      - {{name: failures, key: client_ip, count: failures, rate: 100000/hour}}",
        origin.url()
    ));
    let exchange = || {
        let answer = gateway.post("/").header("Content-Encoding", "gzip").body("text/plain", &bomb).send();
        assert_eq!((answer.status, answer.body.len()), (200, bomb.len()));
    };
    exchange();
    let before = gateway.resident_kib();
    let begin = Barrier::new(BOMBS);
    let waited = Stopwatch::start();
    thread::scope(|scope| {
        for _ in 0..BOMBS {
            scope.spawn(|| {
                begin.wait();
                exchange();
            });
        }
    });
    let peak = gateway.peak_kib().saturating_sub(before);
    println!(
        "{BOMBS} bombs of 50 MiB in {} KiB at a time, each way: {} MiB at the most, {:?}",
        bomb.len() / 1024,
        peak / 1024,
        waited.elapsed()
    );
    assert!(peak <= BOMBS as u64 * BOMB, "{peak} KiB");
}

/// What an exchange may take whose bodies, both ways, are looked into, in KiB.
const BOMB: u64 = 512;
