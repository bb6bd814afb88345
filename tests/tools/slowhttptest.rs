//! slowhttptest in all its modes: timeouts close slow clients, their memory is bounded, and other clients are not
//! delayed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{Exchange, Gateway, Origin, Request, StopOnDrop, Stopwatch, eventually, repeat_until};
use crate::tool::{Said, run};

/// What a connection may cost, in KiB.
const BUSY: u64 = 128;

/// More than the kernel buffers for a socket that is not read.
const LARGE: usize = 6 << 20;

const SHORT: &str = "{header: 2s, body_idle: 2s, keepalive: 2s}";

/// The first words of each mode, and how many connections an ordinary test makes of it. A follow-up every second keeps
/// no head alive; bodies and readers are silent for longer than they may be, and slowhttptest notices only when it reads
/// again that it was closed. Each slow reader costs the kernel of this
/// machine megabytes on both sides, whatever the gateway does, so of them there are fewer.
const MODES: [(&str, &[&str], u64); 4] = [
    ("headers", &["-H", "-i", "1", "-x", "24"], 1000),
    ("body", &["-B", "-i", "50", "-s", "8192", "-x", "10"], 1000),
    ("range", &["-R", "-a", "5", "-b", "2000"], 1000),
    ("read", &["-X", "-w", "512", "-y", "1024", "-n", "3", "-z", "1024", "-k", "1"], 250),
];

/// What was seen while an attack went on.
#[derive(Debug)]
struct Outcome {
    said: Said,
    /// The most that the gateway grew, in KiB.
    grown: u64,
    /// How long another client waited for each of its answers, and for those of the application without the gateway.
    waits: Vec<Duration>,
    direct: Vec<Duration>,
}

fn application() -> Origin {
    Origin::scripted(|mut exchange: Exchange| {
        let large = vec![b'x'; 1 << 20];
        while let Some(received) = exchange.request() {
            let length = if received.target == "/large" { LARGE } else { 5 };
            if !exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")) {
                return;
            }
            // slowhttptest asks for ranges with HEAD.
            let said = if received.method == "HEAD" { 0 } else { length };
            let mut parts = (0..said.div_ceil(large.len())).map(|_| &large[..said.min(large.len())]);
            if !parts.all(|part| exchange.write(part)) {
                return;
            }
        }
    })
}

fn gateway(origin: &Origin, timeouts: &str) -> Gateway {
    // The limit on descriptors bounds the connections of the gateway, and those of slowhttptest.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("as many as the system allows");
    Gateway::start(format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nlog: {{requests: false}}\nserver: {{timeouts: {timeouts}}}",
        origin.url()
    ))
}

/// Attacks, and asks as another client all the while.
fn attack(gateway: &Gateway, origin: &Origin, mode: &[&str], connections: u64, longest: &str) -> Outcome {
    let before = gateway.resident_kib();
    let (is_over, most) = (AtomicBool::new(false), AtomicU64::new(before));
    let url = format!("http://{}/large", gateway.address());
    let connections = connections.to_string();
    let common = ["-c", &connections, "-r", "500", "-l", longest, "-p", "60", "-u", &url];
    let arguments = [mode, &common].concat();
    let (said, waits, direct) = thread::scope(|scope| {
        scope.spawn(|| {
            repeat_until(
                || is_over.load(Ordering::SeqCst),
                Duration::from_millis(20),
                || {
                    most.fetch_max(gateway.resident_kib(), Ordering::SeqCst);
                },
            );
        });
        let asked = scope.spawn(|| {
            let (mut waits, mut direct) = (Vec::new(), Vec::new());
            repeat_until(
                || is_over.load(Ordering::SeqCst),
                Duration::from_millis(5),
                || {
                    for (address, spans) in [(gateway.address(), &mut waits), (origin.address(), &mut direct)] {
                        let waited = Stopwatch::start();
                        assert_eq!(Request::new(address, "GET", "/").status(), 200);
                        spans.push(waited.elapsed());
                    }
                },
            );
            (waits, direct)
        });
        let over = StopOnDrop(&is_over);
        let said = run(&gateway.path("."), "slowhttptest", &arguments);
        drop(over);
        let (waits, direct) = asked.join().expect("everybody else is served");
        (said, waits, direct)
    });
    Outcome { said, grown: most.into_inner() - before, waits, direct }
}

/// The wait that so many of a thousand do not exceed.
fn quantile(waits: &mut [Duration], of_a_thousand: usize) -> Duration {
    waits.sort_unstable();
    waits[(waits.len() * of_a_thousand / 1000).min(waits.len() - 1)]
}

fn check(mode: usize) {
    let (name, arguments, many) = MODES[mode];
    let origin = application();
    let gateway = gateway(&origin, SHORT);
    let mut outcome = attack(&gateway, &origin, arguments, many, "90");
    let said = &outcome.said.text;
    assert!(said.contains("No open connections left"), "{name}: {said}");
    // Asked all the while by slowhttptest itself.
    assert!(!said.contains("service available:   NO"), "{name}: {said}");
    eventually("nothing is left of them", || gateway.connections() == 0);
    assert!(outcome.grown <= many * BUSY, "{name}: {} KiB", outcome.grown);
    let (through, direct) = (quantile(&mut outcome.waits, 500), quantile(&mut outcome.direct, 500));
    assert!(through <= direct * 20 + Duration::from_secs(1), "{name}: {through:?}, {direct:?} without the gateway");
}

#[test]
fn slow_heads_are_closed_and_hold_up_nobody() {
    check(0);
}

#[test]
fn slow_bodies_are_closed_and_hold_up_nobody() {
    check(1);
}

#[test]
fn requests_for_many_ranges_are_answered_and_hold_up_nobody() {
    check(2);
}

#[test]
fn slow_readers_are_closed_and_hold_up_nobody() {
    check(3);
}

/// `cargo test --release --test tools -- --ignored --nocapture slowhttptest`
#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn what_a_thousand_slow_clients_cost_is_printed() {
    for (name, arguments, _) in MODES {
        let origin = application();
        let gateway = gateway(&origin, SHORT);
        let waited = Stopwatch::start();
        let mut outcome = attack(&gateway, &origin, arguments, 1000, "110");
        let took = waited.elapsed().as_secs();
        let all = outcome.said.text.contains("No open connections left");
        let [through, direct] = [&mut outcome.waits, &mut outcome.direct].map(|waits| quantile(waits, 990));
        println!(
            "{name}: {} after {took} s; the gateway grew by {} MiB; p99 of others {through:?}, {direct:?} without the \
             gateway, of {} requests",
            if all { "all closed" } else { "NOT ALL CLOSED" },
            outcome.grown / 1024,
            outcome.waits.len()
        );
        assert!(all, "{name}: {}", outcome.said.text);
        let left = fs::read_to_string(format!("/proc/{}/status", gateway.pid()));
        assert!(left.is_ok(), "it goes on");
    }
}
