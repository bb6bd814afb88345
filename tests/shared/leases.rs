//! Gateways that hold units of a limit ask Redis less often, and let no more pass: counted at Redis and at the application.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use portcullis::rules::limit::AlgorithmName;
use portcullis::words::clock::wall;

use crate::site::{Site, alone, ask_admin, config, store_up};
use crate::state;
use crate::support::{
    Answer, Arrival, Caller, Gateway, Origin, RedisServer, Stopwatch, eventually, surely_decided_within,
};

const STRICT: &str = "  on_failure: deny";

/// When requests were sent, and what was answered.
type Answers = Vec<(Duration, u16)>;

#[test]
fn a_busy_key_takes_few_calls_and_passes_no_more() {
    let _alone = alone();
    let (most, window) = (1500, Duration::from_secs(30));
    let limits = "limits:\n  - {name: of-the-test, key: [], rate: 1500 per 30 seconds}";
    let mut site = Site::start(3, "timeout: 10s", STRICT, limits);
    site.most = most;
    let addresses: Vec<SocketAddr> = site.gateways.iter().map(Gateway::address).collect();

    let before = calls(&site);
    let answers = load(&site, &addresses, 120.0, Duration::from_secs(4));
    assert!(answers.iter().all(|(_, status)| *status == 200), "there is room");
    let (asked, leased) = (calls(&site) - before, leased(&site));
    assert!(leased > 0 && asked < answers.len() * 2 / 3, "{asked} calls, {leased} leased, {}", answers.len());

    // A gateway dies while it holds some, and the rate is used up.
    let mut victim = site.gateways.remove(0);
    victim.kill();
    let begun = Stopwatch::start();
    let mut refused = 0;
    while refused == 0 && begun.elapsed() < Duration::from_secs(20) {
        let answers = load(&site, &addresses[1..], 1000.0, Duration::from_secs(1));
        refused = answers.iter().filter(|(_, status)| *status == 429).count();
    }
    assert!(refused > 0, "the rate was never used up");
    let arrivals = site.application.arrivals();
    let fullest = surely_decided_within(window, &arrivals.iter().collect::<Vec<&Arrival>>());
    assert!(fullest <= most, "{fullest} in {window:?}, {most} are allowed");
}

#[test]
fn what_a_gateway_holds_is_free_again_when_it_ends() {
    let _alone = alone();
    let limits = "limits:\n  - {name: of-the-test, key: [], rate: 30000/hour}";
    let mut site = Site::start(1, "timeout: 10s", STRICT, limits);
    site.most = 30_000;
    let addresses = [site.gateways[0].address()];
    let answers = load(&site, &addresses, 200.0, Duration::from_secs(3));
    let passed = answers.iter().filter(|(_, status)| *status == 200).count();
    assert!(leased(&site) > 0);
    site.gateways[0].signal("TERM");
    assert!(site.gateways[0].ended().success());
    site.gateways.clear();
    site.add(&[]);
    let state = ask_admin(&site.gateways[0], "GET", "/api/v1/limits/of-the-test/state").text();
    let used = format!("{}", 30_000 - passed);
    assert!(state.contains(&used), "{passed} have passed: {state}");
}

#[test]
fn every_algorithm_takes_few_calls_and_passes_no_more() {
    let _alone = alone();
    for algorithm in AlgorithmName::ALL.into_iter().filter(|algorithm| *algorithm != AlgorithmName::SlidingWindowLog) {
        let limits =
            format!("limits:\n  - {{name: of-the-test, key: [], rate: 900 per 30 seconds, algorithm: {algorithm}}}");
        let mut site = Site::start(3, "timeout: 10s", STRICT, &limits);
        site.most = 900;
        let addresses: Vec<SocketAddr> = site.gateways.iter().map(Gateway::address).collect();
        // Where a window ends, a fixed one lets a whole budget more pass, and a counter a part of it.
        eventually("a window has long to go", || seconds_of_window(30) < 22);
        let (before, begun) = (calls(&site), Stopwatch::start());
        let first = load(&site, &addresses, 120.0, Duration::from_secs(3));
        assert!(first.iter().all(|(_, status)| *status == 200), "{algorithm}: there is room");
        let (asked, leased) = (calls(&site) - before, leased(&site));
        assert!(
            leased > 0 && asked < first.len() * 3 / 4,
            "{algorithm}: {asked} calls, {leased} leased, {}",
            first.len()
        );
        let second = load(&site, &addresses, 600.0, Duration::from_secs(2));
        let passed = first.iter().chain(&second).filter(|(_, status)| *status == 200).count();
        // A bucket refills meanwhile.
        let refilled = usize::try_from(begun.elapsed().as_millis()).expect("short") * 900 / 30_000;
        let most = 900 + if algorithm == AlgorithmName::TokenBucket { refilled + 1 } else { 0 };
        assert!(passed <= most && second.iter().any(|(_, status)| *status == 429), "{algorithm}: {passed} of {most}");
    }
}

/// How far the window of so many seconds is: windows begin at multiples of their length since 1970.
fn seconds_of_window(length: u64) -> u64 {
    wall().as_micros() / 1_000_000 % length
}

#[test]
fn slots_in_advance_spare_calls_and_are_never_too_many() {
    let _alone = alone();
    let (in_flight, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, fullest) = (Arc::clone(&in_flight), Arc::clone(&most));
    let application = Origin::scripted(move |mut exchange| {
        while exchange.request().is_some() {
            fullest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            exchange.pause(Duration::from_millis(100));
            now.fetch_sub(1, Ordering::SeqCst);
            exchange.write(Answer::ok("done").bytes());
        }
    });
    let redis = RedisServer::start();
    let limits = "limits:\n  - {name: of-the-test, key: [], concurrent: 130}";
    let config = config(&application.url(), &format!("url: \"{}\", timeout: 10s", redis.url()), STRICT, limits);
    let gateways: Vec<Gateway> = (0..3).map(|_| Gateway::start(&config)).collect();
    eventually("all have found Redis", || gateways.iter().all(store_up));

    let before = calls_of(&redis);
    let answers = clients(&gateways, 15, Duration::from_secs(3));
    let asked = calls_of(&redis) - before;
    assert!(answers.iter().all(|status| *status == 200), "there is room");
    // One takes a slot and one gives it back, if each request asks.
    assert!(asked < answers.len(), "{asked} calls for {} requests", answers.len());

    let answers = clients(&gateways, 50, Duration::from_secs(3));
    let denied = answers.iter().filter(|status| **status == 429).count();
    let fullest = most.load(Ordering::SeqCst);
    assert!(denied > 0 && fullest <= 130, "{fullest} were in flight, and {denied} denied");
    // Nothing stays taken.
    eventually("all slots are free", || {
        clients(&gateways[..1], 129, Duration::ZERO).iter().all(|status| *status == 200)
    });
    state::is_clean(&redis, 130);
}

/// Clients of each gateway that send one request after the other for a while, and at least one.
fn clients(gateways: &[Gateway], each: usize, span: Duration) -> Vec<u16> {
    thread::scope(|scope| {
        let clients: Vec<_> = gateways
            .iter()
            .flat_map(|gateway| vec![gateway.address(); each])
            .map(|address| {
                scope.spawn(move || {
                    let (mut caller, mut answers, begun) = (Caller::default(), Vec::new(), Stopwatch::start());
                    while answers.is_empty() || begun.elapsed() < span {
                        answers.push(caller.call(address, "/", "", begun).expect("an answer"));
                        if answers.last() == Some(&429) {
                            thread::sleep(Duration::from_millis(50));
                        }
                    }
                    answers
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("no panic here")).collect()
    })
}

#[test]
fn a_limit_without_leases_asks_for_each_request() {
    let _alone = alone();
    let limits = "limits:\n  - {name: of-the-test, key: [], rate: 30000/hour, leases: off}";
    let mut site = Site::start(1, "timeout: 10s", STRICT, limits);
    site.most = 30_000;
    let addresses = [site.gateways[0].address()];
    let before = calls(&site);
    let answers = load(&site, &addresses, 100.0, Duration::from_secs(3));
    assert!(calls(&site) - before >= answers.len());
    assert_eq!(leased(&site), 0);
}

#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "a measurement is read")]
fn calls_and_refusals_at_several_loads_are_printed() {
    let _alone = alone();
    let loads = [0.5, 0.8, 0.95, 1.2];
    let all: Vec<_> = loads.into_iter().map(|load| thread::spawn(move || measured(load))).collect();
    for measured in all {
        println!("{}", measured.join().expect("no window sees too many"));
    }
}

/// Eight gateways with 6,000 a minute and so much of that as load: two minutes, of which the second is measured.
fn measured(part: f64) -> String {
    let (most, window) = (6000, Duration::from_secs(60));
    let limits = "limits:\n  - {name: of-the-test, key: [], rate: 6000/minute}";
    let mut site = Site::start(8, "timeout: 10s", STRICT, limits);
    site.most = most;
    let addresses: Vec<SocketAddr> = site.gateways.iter().map(Gateway::address).collect();
    let first = load(&site, &addresses, 100.0 * part, window);
    let (before, held) = (calls(&site), leased(&site));
    let second = load(&site, &addresses, 100.0 * part, window);
    let (asked, held) = (calls(&site) - before, leased(&site) - held);
    let passed = |answers: &Answers| answers.iter().filter(|(_, status)| *status == 200).count();
    let all: Answers = first.iter().chain(&second).copied().collect();
    assert!(all.iter().all(|(_, status)| matches!(status, 200 | 429)), "every request is decided");
    let fullest = surely_decided_within(window, &site.application.arrivals().iter().collect::<Vec<&Arrival>>());
    assert!(fullest <= most, "{fullest} in {window:?}");
    let wrongly = passed_by_one(&all, most, window).saturating_sub(passed(&all));
    format!(
        "load {:.0} %: {} requests, {} passed, {asked} calls, {held} without a call: {:.1} % fewer calls; {wrongly} of {} \
         wrongly refused, {:.2} %; the fullest window has {fullest}",
        part * 100.0,
        second.len(),
        passed(&second),
        100.0 - percent(asked, second.len()),
        all.len(),
        percent(wrongly, all.len()),
    )
}

fn percent(part: usize, whole: usize) -> f64 {
    let number = |number: usize| f64::from(u32::try_from(number).expect("few"));
    100.0 * number(part) / number(whole)
}

/// How many requests pass if one counter sees all of them when they are sent.
fn passed_by_one(answers: &Answers, most: usize, window: Duration) -> usize {
    let mut sent: Vec<Duration> = answers.iter().map(|(sent, _)| *sent).collect();
    sent.sort_unstable();
    let (mut counted, mut passed) = (VecDeque::new(), 0);
    for at in sent {
        while counted.front().is_some_and(|first| *first + window <= at) {
            counted.pop_front();
        }
        if counted.len() < most {
            counted.push_back(at);
            passed += 1;
        }
    }
    passed
}

/// Sends so many requests a second for a while, spread over the gateways, each at a moment of its own.
fn load(site: &Site, addresses: &[SocketAddr], a_second: f64, span: Duration) -> Answers {
    let clock = site.application.clock();
    let end = clock.elapsed() + span;
    let each = a_second / f64::from(u32::try_from(addresses.len()).expect("few"));
    thread::scope(|scope| {
        let clients: Vec<_> = addresses
            .iter()
            .map(|address| {
                scope.spawn(move || {
                    let (mut caller, mut answers) = (Caller::default(), Answers::new());
                    let mut next = clock.elapsed();
                    loop {
                        next += Duration::from_secs_f64(-(1.0 - fastrand::f64()).ln() / each);
                        if next >= end {
                            return answers;
                        }
                        thread::sleep(next.saturating_sub(clock.elapsed()));
                        let sent = clock.elapsed();
                        answers.push((sent, caller.call(*address, "/", "", clock).expect("an answer")));
                    }
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("no panic here")).collect()
    })
}

/// How many scripts Redis has run.
fn calls(site: &Site) -> usize {
    calls_of(&site.redis)
}

fn calls_of(redis: &RedisServer) -> usize {
    let stats = redis.cli(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse().expect("a number"))
}

/// How many decisions the gateways have made without a call.
fn leased(site: &Site) -> usize {
    let of = |gateway: &Gateway| -> usize {
        let metrics = ask_admin(gateway, "GET", "/metrics").text();
        let line = metrics.lines().find(|line| line.starts_with("portcullis_store_leased_total"));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect("the gateway counts them")
    };
    site.gateways.iter().map(of).sum()
}
