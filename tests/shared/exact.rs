//! No window of length W has more than N passed requests, whatever happens to the gateways: counted at the application.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use crate::site::{RAW, Site, alone, log, store_up};
use crate::support::{Arrival, Caller, Stopwatch, eventually, surely_decided_within};

const GATEWAYS: usize = 4;
const CONNECTIONS: usize = 64;
const REQUESTS: usize = 100_000;
const KEYS: usize = 300;

/// The four rates, and how the configuration writes them.
const RATES: [(usize, Duration); 4] = [
    (4, Duration::from_secs(1)),
    (8, Duration::from_secs(3)),
    (12, Duration::from_secs(6)),
    (16, Duration::from_secs(10)),
];
const LIMIT: &str = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 4/second; 8 per 3 seconds; 12 per 6 seconds; 16 per 10 seconds}";

/// No gateway decides without Redis, and a busy machine is no outage: every decision is one of Redis.
const PATIENT: &str = "timeout: 15s";
const STRICT: &str = "  on_failure: deny";

#[test]
fn four_gateways_never_let_more_pass_than_the_limit_in_any_window() {
    let _alone = alone();
    let site = Site::start(GATEWAYS, PATIENT, STRICT, LIMIT);
    let addresses = addresses(&site);
    let seen = crowd(&site, &addresses, REQUESTS, || {});
    assert_eq!(seen.lost, 0);
    assert_eq!(seen.passed, site.application.count("/"));
    prove(&site, &seen);
}

#[test]
fn a_gateway_killed_on_the_way_and_one_whose_clock_is_wrong_let_no_more_pass() {
    let _alone = alone();
    let mut site = Site::start(GATEWAYS - 1, PATIENT, STRICT, LIMIT);
    let library = faketime();
    site.add(&[("LD_PRELOAD", &library), ("FAKETIME", "+30s"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]);
    let ahead = (seconds_of_clock(&site, GATEWAYS - 1) - seconds_of_clock(&site, 0)).rem_euclid(24 * 3600);
    assert!((20..60).contains(&ahead), "the clock of one gateway is {ahead} s ahead");
    let addresses = addresses(&site);
    let mut victim = site.gateways.remove(1);
    let seen = crowd(&site, &addresses, REQUESTS, || {
        for _ in 0..2 {
            thread::sleep(Duration::from_secs(4));
            victim.restart();
            *addresses[1].lock().expect("no panic here") = victim.address();
        }
    });
    assert!(seen.lost > 0, "no client was connected to the gateway that was killed");
    eventually("the new gateway has found Redis", || store_up(&victim));
    prove(&site, &seen);
}

#[test]
fn a_thousand_of_fifteen_hundred_simultaneous_requests_pass_at_a_limit_of_a_thousand() {
    let _alone = alone();
    let mut site = Site::start(GATEWAYS, PATIENT, STRICT, "limits:\n  - {name: of-the-test, key: [], rate: 1000/hour}");
    site.most = 1000;
    let clock = site.application.clock();
    let mut callers: Vec<(SocketAddr, Caller)> =
        (0..300).map(|number| (site.gateways[number % GATEWAYS].address(), Caller::default())).collect();
    // Five requests behind each other on 300 connections are all on their way before the first answer is read.
    for _ in 0..5 {
        for (address, caller) in &mut callers {
            caller.ask(*address, "/", RAW, clock);
        }
    }
    let mut statuses: Vec<u16> = Vec::new();
    for (_, caller) in &mut callers {
        statuses.extend((0..5).map(|_| caller.answer().expect("an answer")));
    }
    let passed = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((passed, refused), (1000, 500));
    assert_eq!(site.application.count("/"), 1000);
}

/// What the clients saw.
#[derive(Debug, Default)]
struct Seen {
    passed: usize,
    refused: usize,
    /// Requests without an answer: their connection ended.
    lost: usize,
    other: Vec<u16>,
}

type Addresses = Vec<Mutex<SocketAddr>>;

fn addresses(site: &Site) -> Addresses {
    site.gateways.iter().map(|gateway| Mutex::new(gateway.address())).collect()
}

/// Clients on many connections to each gateway, who know few keys well and many a little, while something else happens.
fn crowd(site: &Site, addresses: &Addresses, requests: usize, meanwhile: impl FnOnce()) -> Seen {
    let clock = site.application.clock();
    let began = Stopwatch::start();
    let asked = AtomicUsize::new(0);
    let seen = Mutex::new(Seen::default());
    thread::scope(|scope| {
        for number in 0..GATEWAYS * 2 {
            let (asked, seen) = (&asked, &seen);
            let door = &addresses[number % GATEWAYS];
            scope.spawn(move || {
                let mut callers: Vec<Caller> = (0..CONNECTIONS / 2).map(|_| Caller::default()).collect();
                let mut mine = Seen::default();
                // The longest of the windows is to fill up.
                while asked.load(Ordering::SeqCst) < requests || began.elapsed() < Duration::from_secs(12) {
                    let address = *door.lock().expect("no panic here");
                    for caller in &mut callers {
                        let key = fastrand::usize(..KEYS) * fastrand::usize(..KEYS) / KEYS;
                        caller.ask(address, "/", &format!("{RAW}-{key}"), clock);
                    }
                    let answers: Vec<_> = callers.iter_mut().map(Caller::answer).collect();
                    asked.fetch_add(answers.iter().flatten().count(), Ordering::SeqCst);
                    for answer in answers {
                        match answer {
                            Some(200) => mine.passed += 1,
                            Some(429) => mine.refused += 1,
                            Some(status) => mine.other.push(status),
                            None => mine.lost += 1,
                        }
                    }
                    if mine.lost > 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                let mut seen = seen.lock().expect("no panic here");
                seen.passed += mine.passed;
                seen.refused += mine.refused;
                seen.lost += mine.lost;
                seen.other.append(&mut mine.other);
            });
        }
        meanwhile();
    });
    seen.into_inner().expect("no panic here")
}

/// Fails when the application received more than the limit admits, and when the crowd did not try hard enough to tell.
#[track_caller]
fn prove(site: &Site, seen: &Seen) {
    assert!(seen.other.is_empty(), "{:?}", &seen.other[..10.min(seen.other.len())]);
    assert!(seen.passed + seen.refused >= REQUESTS, "{seen:?}");
    let arrivals = site.application.arrivals();
    assert!(arrivals.len() >= seen.passed && arrivals.len() <= seen.passed + seen.lost, "{seen:?}");
    for (most, window) in RATES {
        let mut fullest = 0;
        for key in 0..KEYS {
            let key = format!("{RAW}-{key}");
            let of_key: Vec<&Arrival> = arrivals.iter().filter(|arrival| arrival.key == key).collect();
            fullest = fullest.max(surely_decided_within(window, &of_key));
        }
        assert!(fullest <= most, "{fullest} in {window:?}, {most} are allowed");
        assert_eq!(fullest, most, "no window of {window:?} was ever full: nothing is proved");
    }
}

#[test]
fn what_is_certainly_too_much_is_found() {
    let at = |sent, arrived| Arrival {
        target: String::new(),
        key: String::new(),
        sent: Duration::from_millis(sent),
        arrived: Duration::from_millis(arrived),
    };
    let second = Duration::from_secs(1);
    let many = |spans: &[(u64, u64)]| {
        let arrivals: Vec<Arrival> = spans.iter().map(|(sent, arrived)| at(*sent, *arrived)).collect();
        surely_decided_within(second, &arrivals.iter().collect::<Vec<_>>())
    };
    assert_eq!(many(&[(0, 1), (500, 501), (990, 995), (1990, 1991)]), 3);
    // The first may have been decided at 0, the last at 1.001 s.
    assert_eq!(many(&[(0, 800), (1000, 1001)]), 1);
    assert_eq!(many(&[]), 0);
}

/// What the log of a gateway says the time is, in seconds of the day.
fn seconds_of_clock(site: &Site, gateway: usize) -> i64 {
    let gateway = &site.gateways[gateway];
    let told = gateway.reloads();
    gateway.signal("HUP");
    eventually("the gateway says something", || gateway.reloads() > told);
    let last = log(gateway).pop().expect("a line");
    let time = last["time"].as_str().expect("lines have a time").to_owned();
    let clock = time.split('T').nth(1).expect("a date and a time");
    let numbers: Vec<i64> = clock[..8].split(':').map(|number| number.parse().expect("a number")).collect();
    numbers[0] * 3600 + numbers[1] * 60 + numbers[2]
}

/// The library that makes a process believe in another time.
fn faketime() -> String {
    let folders = fs::read_dir("/usr/lib").expect("a Unix").filter_map(Result::ok).map(|entry| entry.path());
    let mut files = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    let found = files.find(|file| file.exists()).expect("libfaketime is installed: ./tests/run installs it");
    found.to_string_lossy().into_owned()
}
