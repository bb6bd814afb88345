//! A Redis that is down at the start, or is configured wrongly.

use std::time::Duration;

use crate::site::{RAW, alone, ask_admin, config, log, said_of_redis, store_up};
use crate::state;
use crate::support::{Caller, Gateway, Ledger, RedisServer, Stopwatch, eventually, throughout};

const LIMIT: &str = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 4/hour}";

#[test]
fn a_gateway_starts_without_redis_says_so_once_and_recovers_by_itself() {
    let _alone = alone();
    let application = Ledger::start();
    let mut redis = RedisServer::start();
    redis.kill();
    let store = "  on_failure: local\n  nodes: 2";
    let gateway = Gateway::start(config(&application.url(), &format!("url: \"{}\"", redis.url()), store, LIMIT));
    let ask = |key: &str| {
        Caller::default().call(gateway.address(), "/", key, application.clock()).expect("the gateway answers")
    };
    let first = Stopwatch::start();
    let statuses: Vec<u16> = (0..4).map(|_| ask(RAW)).collect();
    assert_eq!(statuses, [200, 200, 429, 429], "half of four, on two gateways");
    assert!(first.elapsed() < Duration::from_secs(1), "{:?}", first.elapsed());
    // The gateway tries again and again, and logs the outage once.
    throughout(Duration::from_secs(2), || {
        assert_eq!(ask_admin(&gateway, "GET", "/readyz").status, 200);
        assert!(!store_up(&gateway));
        assert_eq!(said_of_redis(&gateway).len(), 1, "{:#?}", said_of_redis(&gateway));
    });
    redis.restart();
    let back = Stopwatch::start();
    eventually("the gateway finds Redis", || store_up(&gateway));
    assert!(back.elapsed() < Duration::from_secs(1), "{:?}", back.elapsed());
    let fresh = format!("{RAW}-fresh");
    let statuses: Vec<u16> = (0..5).map(|_| ask(&fresh)).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 429]);
    eventually("its return is told", || said_of_redis(&gateway).len() == 2);
    state::is_clean(&redis, 4);
}

#[test]
fn a_wrong_password_at_the_start_is_told_without_the_password() {
    let _alone = alone();
    let application = Ledger::start();
    let redis = RedisServer::with_options(&["--requirepass", "the-right-one"]);
    let url = redis.url().replace("redis://", "redis://:the-wrong-one@");
    let gateway = Gateway::start(config(&application.url(), &format!("url: \"{url}\""), "", LIMIT));
    eventually("it is told", || !said_of_redis(&gateway).is_empty());
    assert!(!store_up(&gateway));
    let told = gateway.stderr().join("\n");
    assert!(!told.contains("the-wrong-one") && !told.contains("the-right-one"), "{told}");
}

#[test]
fn an_eviction_policy_that_drops_counters_is_named_once() {
    let _alone = alone();
    let application = Ledger::start();
    let redis = RedisServer::with_options(&["--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"]);
    let url = format!("url: \"{}\"", redis.url());
    let gateway = Gateway::start(config(&application.url(), &url, "", LIMIT));
    let warned = || {
        let lines = log(&gateway).iter().map(ToString::to_string).collect::<Vec<_>>();
        lines.into_iter().filter(|line| line.contains("allkeys-lru")).collect::<Vec<_>>()
    };
    eventually("the eviction policy is named", || !warned().is_empty());
    let line = warned().join("\n");
    assert!(line.contains("maxmemory-policy") && line.contains("noeviction") && line.contains("WARN"), "{line}");
    assert_eq!(warned().len(), 1);
    assert!(store_up(&gateway));
    let verdict = || ask_admin(&gateway, "GET", "/api/v1/status").json()["verdict"].take();
    let told = verdict()["sentence"].as_str().expect("a sentence").to_owned();
    assert!(told.contains("`maxmemory-policy allkeys-lru`: when its memory is short"), "{told}");
    assert_eq!(verdict()["level"], "trouble");
}

#[test]
fn a_redis_as_it_should_be_is_not_warned_about() {
    let _alone = alone();
    let application = Ledger::start();
    let redis = RedisServer::start();
    let url = format!("url: \"{}\"", redis.url());
    let gateway = Gateway::start(config(&application.url(), &url, "", LIMIT));
    eventually("the gateway has found Redis", || store_up(&gateway));
    // `check` warns of the key of the limit, which any client may invent.
    let warns = |line: &String| line.contains("WARN") && !line.contains("portcullis.yaml:");
    assert!(!gateway.stderr().iter().any(warns), "{:#?}", gateway.stderr());
}
