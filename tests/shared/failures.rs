//! Every kind of Redis outage, and what clients notice.
//!
//! `cargo test --test shared failures -- --nocapture --test-threads 1` prints the table of docs/src/redis.md: what clients get under
//! `local`, `allow` and `deny`; how much longer than usual the first requests take; the median of the later ones, the
//! slowest, and beside it the slowest of a gateway that has no Redis; how long until Redis decides again; the cause that
//! is logged.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::outage;
use crate::outage::{ROUTES, STORE};
use crate::site::{RAW, Site, alone, ask_admin, store_up};
use crate::support::{RedisServer, eventually};

fn site() -> Site {
    Site::start(2, "timeout: 100ms", STORE, ROUTES)
}

/// How many requests of this client pass, of so many.
fn passes(site: &Site, gateway: usize, target: &str, key: &str, asked: usize) -> usize {
    (0..asked).filter(|_| site.status(gateway, target, key) == 200).count()
}

/// Before it: some clients have been counted, one has been refused.
fn count_some_clients(site: &Site) {
    // Admitted and refused through the other gateway: this one knows of its last refusal only.
    assert_eq!(passes(site, 1, "/local", &format!("{RAW}-exhausted"), 11), 10);
    assert_eq!(site.status(0, "/local", &format!("{RAW}-exhausted")), 429);
    assert_eq!(passes(site, 0, "/local", &format!("{RAW}-warm"), 3), 3);
}

/// During the outage: limits hold at this gateway's share, and readiness and metrics report the outage.
fn check_during_outage(site: &Site) {
    assert_eq!(passes(site, 0, "/local", &format!("{RAW}-exhausted"), 5), 0, "refused before, and still");
    assert_eq!(passes(site, 0, "/local", &format!("{RAW}-warm"), 9), 2, "three of its five were used");
    assert_eq!(passes(site, 0, "/local", &format!("{RAW}-fresh"), 9), 5, "half of ten, on two gateways");
    assert_eq!(passes(site, 0, "/allow", &format!("{RAW}-fresh"), 20), 20);
    assert_eq!(passes(site, 0, "/deny", &format!("{RAW}-fresh"), 20), 0);
    assert!(!store_up(&site.gateways[0]));
    let ready = ask_admin(&site.gateways[0], "GET", "/readyz");
    assert_eq!(ready.status, 200);
    assert!(ready.text().contains("redis"), "{}", ready.text());
    let metrics = ask_admin(&site.gateways[0], "GET", "/metrics").text();
    let errors = metrics.lines().filter(|line| line.starts_with("portcullis_store_errors_total{"));
    assert!(errors.count() > 0, "{metrics}");
}

/// After it: Redis decides, for all gateways together, and both say so.
fn is_normal(site: &Site) {
    for gateway in &site.gateways {
        eventually("the gateway says that Redis is back", || store_up(gateway));
    }
    let key = format!("{RAW}-after");
    assert_eq!((0..12).filter(|number| site.status(number % 2, "/local", &key) == 200).count(), 10);
}

fn survive(name: &str, site: &mut Site, break_it: impl FnOnce(&mut Site), mend: impl FnOnce(&mut Site)) {
    count_some_clients(site);
    let outage = outage::measure(site, break_it, |site| check_during_outage(site), mend);
    outage.is_survived(name, site);
    is_normal(site);
}

#[test]
fn stopped() {
    let _alone = alone();
    let mut site = site();
    survive("stopped (SIGSTOP)", &mut site, |site| site.redis.pause(), |site| site.redis.resume());
    // What was counted before is counted still.
    assert_eq!(site.status(1, "/local", &format!("{RAW}-exhausted")), 429);
}

#[test]
fn killed_and_started_again_empty() {
    let _alone = alone();
    let mut site = site();
    survive("killed, started again empty", &mut site, |site| site.redis.kill(), |site| site.redis.restart());
}

#[test]
fn loading() {
    let _alone = alone();
    // A millisecond for each key makes a short file take long, as a long one does.
    let options = ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"];
    let server = RedisServer::with_options(&options);
    fill(&server);
    let mut site = Site::on(server, 2, "timeout: 100ms", STORE, ROUTES);
    let restart = |site: &mut Site| {
        assert_eq!(site.redis.cli(&["SAVE"]), "OK");
        site.redis.restart();
        assert!(site.redis.cli(&["GET", "any"]).starts_with("LOADING"));
    };
    let loaded = |site: &mut Site| {
        assert!(site.redis.cli(&["GET", "any"]).starts_with("LOADING"), "it was to take longer");
        eventually("the file is loaded", || site.redis.cli(&["PING"]) == "PONG");
    };
    survive("loading its file", &mut site, restart, loaded);
    assert_eq!(site.status(1, "/local", &format!("{RAW}-exhausted")), 429);
}

/// Some thousands of keys that no gateway uses.
fn fill(server: &RedisServer) {
    let script = "for i = 1, 4000 do redis.call('SET', 'filler:' .. i, string.rep('x', 100), 'PX', 600000) end";
    server.cli(&["EVAL", script, "0"]);
}

#[test]
fn read_only_after_a_failover() {
    let _alone = alone();
    let mut site = site();
    // The master that it must follow does not exist, so it keeps its data.
    let demote = |site: &mut Site| assert_eq!(site.redis.cli(&["REPLICAOF", "127.0.0.1", "1"]), "OK");
    let promote = |site: &mut Site| assert_eq!(site.redis.cli(&["REPLICAOF", "NO", "ONE"]), "OK");
    survive("READONLY, a replica", &mut site, demote, promote);
    assert_eq!(site.status(1, "/local", &format!("{RAW}-exhausted")), 429);
}

#[test]
fn out_of_memory() {
    let _alone = alone();
    let mut site = site();
    let full = |site: &mut Site| assert_eq!(site.redis.cli(&["CONFIG", "SET", "maxmemory", "1"]), "OK");
    let room = |site: &mut Site| assert_eq!(site.redis.cli(&["CONFIG", "SET", "maxmemory", "0"]), "OK");
    survive("out of memory", &mut site, full, room);
    assert_eq!(site.status(1, "/local", &format!("{RAW}-exhausted")), 429);
}

#[test]
fn the_password_changed() {
    let _alone = alone();
    let mut site = site();
    // Who is connected stays connected, until something ends the connection.
    let lock = |site: &mut Site| {
        assert_eq!(site.redis.cli(&["CONFIG", "SET", "requirepass", "another"]), "OK");
        site.redis.cli(&["-a", "another", "--no-auth-warning", "CLIENT", "KILL", "TYPE", "normal"]);
        site.redis.cli(&["-a", "another", "--no-auth-warning", "CLIENT", "KILL", "TYPE", "pubsub"]);
    };
    let unlock = |site: &mut Site| {
        let answer = site.redis.cli(&["-a", "another", "--no-auth-warning", "CONFIG", "SET", "requirepass", ""]);
        assert_eq!(answer, "OK");
    };
    survive("another password", &mut site, lock, unlock);
    assert_eq!(site.status(1, "/local", &format!("{RAW}-exhausted")), 429);
}

#[test]
fn scripts_flushed() {
    let _alone = alone();
    let mut site = site();
    count_some_clients(&site);
    let flush = |site: &mut Site| assert_eq!(site.redis.cli(&["SCRIPT", "FLUSH"]), "OK");
    let outage = outage::measure(&mut site, flush, flush, flush);
    outage.is_none("scripts flushed", &site);
    is_normal(&site);
    assert_eq!(site.status(1, "/local", &format!("{RAW}-exhausted")), 429);
}

#[test]
fn a_gateway_and_redis_killed_amid_a_burst_leave_nothing_behind() {
    let _alone = alone();
    let mut site = site();
    let clock = site.application.clock();
    let addresses: Vec<_> = site.gateways.iter().map(crate::support::Gateway::address).collect();
    let mut victim = site.gateways.remove(1);
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (address, dies, answered) = (addresses[number % 2], addresses[1], &answered);
            scope.spawn(move || {
                let mut callers: Vec<_> = (0..16).map(|_| crate::support::Caller::default()).collect();
                for round in 0..60 {
                    for (place, caller) in callers.iter_mut().enumerate() {
                        caller.ask(address, "/local", &format!("{RAW}-{}", (round * 7 + place) % 50), clock);
                    }
                    for caller in &mut callers {
                        let status = caller.answer();
                        answered.fetch_add(1, Ordering::SeqCst);
                        // Only who was connected to the gateway that died goes without an answer.
                        assert!(matches!(status, Some(200 | 429)) || address == dies, "{status:?}");
                    }
                }
            });
        }
        let more_are_answered = || {
            let before = answered.load(Ordering::SeqCst);
            eventually("more are answered", || answered.load(Ordering::SeqCst) > before + 500);
        };
        more_are_answered();
        victim.kill();
        more_are_answered();
        site.redis.kill();
        more_are_answered();
        site.redis.restart();
    });
    site.add(&[]);
    is_normal(&site);
}
