//! A takeover of many keys: they move while requests are decided.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use crate::support::{Gateway, Origin, RawClient, Request, StopOnDrop, Stopwatch, binary, eventually, repeat_until};
use crate::takeover_counts::taken_over;

/// The most that pass under one name.
const MOST: usize = 60;

const NAMES: usize = 12;

/// Limits by pairs of fields, which one request may send many of, and one by name.
fn gateway(origin: &Origin) -> Gateway {
    let pairs = (0..4).map(|limit| {
        let key = format!("[header.x-{limit}, header.y-{limit}]");
        format!("{{name: pairs-{limit}, key: {key}, rate: 1000/hour}}")
    });
    let pairs: Vec<_> = pairs.collect();
    Gateway::start(format!(
        "upstream: {}
admin: {{address: 127.0.0.1:0}}
log: {{requests: false}}
store: {{memory: {{max_keys: 20000000}}}}
server: {{timeouts: {{drain: 1m}}}}
limits:
  - {{name: names, key: header.x-name, rate: {MOST} per 7 days}}
  - {{name: slots, key: header.x-slots, concurrent: 1000}}
  - {}",
        origin.url(),
        pairs.join("\n  - ")
    ))
}

/// A request with so many different values in both fields of each pair.
fn request(gateway: &Gateway, number: usize, values: usize) -> Request {
    let mut request = gateway.get("/").header("x-name", &format!("filler-{number}"));
    for limit in 0..4 {
        for value in 0..values {
            request = request.header(&format!("x-{limit}"), &format!("{number}-{value}"));
            request = request.header(&format!("y-{limit}"), &value.to_string());
        }
    }
    request
}

/// Makes about so many keys.
fn fill(gateway: &Gateway, keys: usize) {
    let (next, requests) = (AtomicUsize::new(0), keys / (4 * 8 * 8));
    thread::scope(|scope| {
        for _ in 0..4 {
            let (next, mut client) = (&next, gateway.connect());
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= requests {
                        break;
                    }
                    assert_eq!(request(gateway, number, 8).send_on(&mut client).status, 200);
                }
            });
        }
    });
}

/// How many keys a gateway has.
fn keys(gateway: &Gateway) -> usize {
    let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let line = metrics.lines().find(|line| line.starts_with("portcullis_store_keys")).expect("a gauge");
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[track_caller]
fn send(process: u32, signal: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// The processes of one configuration.
fn processes(gateway: &Gateway) -> Vec<u32> {
    let folder = fs::canonicalize(gateway.path(".")).expect("a folder");
    let binary = fs::canonicalize(binary()).expect("the binary");
    let numbers = fs::read_dir("/proc").expect("processes").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_there = |process: &u32| {
        let link = |name: &str| fs::read_link(Path::new("/proc").join(process.to_string()).join(name)).ok();
        link("cwd").is_some_and(|cwd| cwd == folder) && link("exe").is_some_and(|exe| exe == binary)
    };
    numbers.filter(is_there).collect()
}

/// The resident memory of all of them, in KiB.
fn resident(processes: &[u32]) -> u64 {
    let kib = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        status.lines().find(|line| line.starts_with("VmRSS:"))?.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    processes.iter().filter_map(kib).sum()
}

#[test]
fn no_limit_lets_more_pass_while_many_keys_move() {
    let origin = Origin::start();
    let mut current = gateway(&origin);
    fill(&current, 100_000);
    let filled = origin.count();
    let over = AtomicBool::new(false);
    let passed: Vec<_> = (0..NAMES).map(|_| AtomicUsize::new(0)).collect();
    let denied = AtomicUsize::new(0);
    let address = current.address();
    thread::scope(|scope| {
        let _over = StopOnDrop(&over);
        for client in 0..8 {
            let (over, passed, denied) = (&over, &passed, &denied);
            scope.spawn(move || {
                let mut standing: Option<RawClient> = None;
                let mut number = client;
                repeat_until(
                    || over.load(Ordering::SeqCst),
                    Duration::from_millis(10),
                    || {
                        number += 5;
                        let name = number % NAMES;
                        // Pairs that were counted before, and may not have moved yet.
                        let pair = (number % 300).to_string();
                        let request = Request::new(address, "GET", "/").header("x-name", &format!("name-{name}"));
                        let request = request.header("x-0", &format!("{pair}-0")).header("y-0", "0");
                        let request = request.header("x-slots", &name.to_string());
                        let mut client = standing.take().unwrap_or_else(|| request.connect());
                        let response = request.send_on(&mut client);
                        match response.status {
                            200 => _ = passed[name].fetch_add(1, Ordering::SeqCst),
                            429 => _ = denied.fetch_add(1, Ordering::SeqCst),
                            other => panic!("{other}"),
                        }
                        if response.header("connection") != Some("close") {
                            standing = Some(client);
                        }
                    },
                );
            });
        }
        for _ in 0..2 {
            let next = taken_over(&current);
            assert_eq!(current.ended().code(), Some(0));
            current = next;
        }
        let all = |count: &AtomicUsize| count.load(Ordering::SeqCst) >= MOST;
        eventually("all that may has passed", || passed.iter().all(all));
        let begun = denied.load(Ordering::SeqCst);
        eventually("more are denied", || denied.load(Ordering::SeqCst) > begun + 50);
    });
    let passed: Vec<_> = passed.into_iter().map(AtomicUsize::into_inner).collect();
    assert_eq!((passed, origin.count() - filled), (vec![MOST; NAMES], NAMES * MOST));
    // All keys are there, and no slot is taken.
    assert!(keys(&current) > 90_000, "{}", keys(&current));
}

#[test]
fn a_successor_that_is_killed_while_keys_move_leaves_the_others() {
    let origin = Origin::start();
    let mut gateway = gateway(&origin);
    fill(&gateway, 100_000);
    let before = keys(&gateway);
    let left = fastrand::usize(before / 10..before * 9 / 10);
    thread::scope(|scope| {
        let failing = scope.spawn(|| gateway.failing_successor());
        let mut successor = None;
        eventually("the successor is there", || {
            successor = processes(&gateway).into_iter().find(|process| *process != gateway.pid());
            successor.is_some()
        });
        let successor = successor.expect("it is there");
        // It runs for moments, so that it has not all keys before anybody looks, however busy the machine is.
        eventually("some keys have moved", || {
            send(successor, "CONT");
            thread::sleep(Duration::from_millis(2));
            send(successor, "STOP");
            keys(&gateway) < left
        });
        send(successor, "KILL");
        // A request that waits for it is decided here.
        assert_eq!(gateway.get("/").header("x-name", "any").status(), 200);
        assert!(!failing.join().expect("no panic").0.success());
    });
    let told = |line: &String| line.contains("which begin anew") && line.contains("this one goes on");
    eventually("it is told", || gateway.log_messages().iter().any(told));
    let left = keys(&gateway);
    assert!(left > 0 && left < before, "{left} of {before}");
    let next = taken_over(&gateway);
    assert!(keys(&next) >= left, "{} of {left}", keys(&next));
    assert_eq!(gateway.ended().code(), Some(0));
}

/// How much longer than before a request takes at most.
const LONGEST: Duration = Duration::from_millis(100);

/// The most memory of both processes together, in parts of a hundred of one.
const MOST_MEMORY: u64 = 130;

/// Asks about keys that were counted before. Returns how many requests were answered, and the slowest of those before and
/// of those since the takeover has begun.
fn ask(gateway: &Gateway, most: usize, has_begun: &AtomicBool, is_over: &AtomicBool) -> (u64, [Duration; 2]) {
    let (mut slowest, mut requests) = ([Duration::ZERO; 2], 0);
    let mut standing: Option<RawClient> = None;
    repeat_until(
        || is_over.load(Ordering::SeqCst),
        Duration::from_millis(1),
        || {
            requests += 1;
            let request = request(gateway, fastrand::usize(..most), 1);
            let mut client = standing.take().unwrap_or_else(|| request.connect());
            let sent = Stopwatch::start();
            let response = request.send_on(&mut client);
            let slowest = &mut slowest[usize::from(has_begun.load(Ordering::SeqCst))];
            *slowest = sent.elapsed().max(*slowest);
            if response.header("connection") != Some("close") {
                standing = Some(client);
            }
        },
    );
    (requests, slowest)
}

#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn measure(count: usize) {
    let origin = Origin::start();
    let gateway = gateway(&origin);
    fill(&gateway, count);
    // Memory of the filling is given back.
    thread::sleep(Duration::from_secs(3));
    let (alone, keys) = (resident(&[gateway.pid()]), keys(&gateway));
    let (has_begun, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (took, asked, together) = thread::scope(|scope| {
        let end = StopOnDrop(&is_over);
        let ask = || ask(&gateway, count / 256, &has_begun, &is_over);
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        let sampling = scope.spawn(|| {
            let mut most = 0;
            repeat_until(
                || is_over.load(Ordering::SeqCst),
                Duration::from_millis(20),
                || {
                    most = most.max(resident(&processes(&gateway)));
                },
            );
            most
        });
        thread::sleep(Duration::from_secs(5));
        has_begun.store(true, Ordering::SeqCst);
        let begun = Stopwatch::start();
        let _next = taken_over(&gateway);
        let took = begun.elapsed();
        drop(end);
        let asked: Vec<_> = asking.into_iter().map(|client| client.join().expect("no panic")).collect();
        (took, asked, sampling.join().expect("no panic"))
    });
    let requests: u64 = asked.iter().map(|(requests, _)| requests).sum();
    let slowest = [0, 1].map(|when| asked.iter().map(|(_, slowest)| slowest[when]).max().expect("some"));
    println!(
        "{keys} keys moved in {took:?}; the slowest of {requests} requests took {:?} before and {:?} meanwhile; {} MiB \
         alone, at most {} MiB together ({} %)",
        slowest[0],
        slowest[1],
        alone >> 10,
        together >> 10,
        100 * together / alone
    );
    assert!(slowest[1] <= slowest[0] + LONGEST, "{slowest:?}");
    assert!(100 * together <= MOST_MEMORY * alone || count < 10_000_000, "{together} KiB, {alone} KiB alone");
}

#[test]
#[ignore = "measures"]
fn a_takeover_of_a_million_keys_is_printed() {
    measure(1_000_000);
}

#[test]
#[ignore = "measures"]
fn a_takeover_of_ten_million_keys_is_printed() {
    measure(10_000_000);
}
