//! Charges that count as made when a replica has them: `store.redis.wait`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::site::{RAW, Site, alone, config, said_of_redis, store_up};
use crate::support::{Caller, Gateway, Ledger, RedisCluster, RedisSentinels, RedisServer, eventually};

const DENY: &str = "  on_failure: deny\n  nodes: 1";

fn replica_of(master: &RedisServer) -> RedisServer {
    let port = master.address().port().to_string();
    let replica = RedisServer::with_options(&["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"]);
    eventually("the replica follows", || replica.cli(&["INFO", "replication"]).contains("master_link_status:up"));
    replica
}

#[test]
fn a_charge_that_no_replica_has_does_not_count_as_made() {
    let _alone = alone();
    let redis = RedisServer::with_options(&["--repl-diskless-sync-delay", "0"]);
    let replica = replica_of(&redis);
    let limit = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 3/hour}";
    let site = Site::on(redis, 1, "timeout: 2s, wait: 1", DENY, limit);
    let ask = |key: &str| site.status(0, "/", &format!("{RAW}-{key}"));
    assert_eq!([(); 5].map(|()| ask("first")), [200, 200, 200, 429, 429]);

    replica.pause();
    assert_eq!(ask("second"), 503);
    eventually("the server counts as down", || !store_up(&site.gateways[0]));
    assert_eq!([(); 3].map(|()| ask("third")), [503; 3]);
    eventually("the cause is said", || said_of_redis(&site.gateways[0]).join("\n").contains("noreplicas"));

    replica.resume();
    eventually("the server counts as up", || store_up(&site.gateways[0]));
    // What was refused above is counted: it reached the master.
    assert_eq!([(); 3].map(|()| ask("second")), [200, 200, 429]);
    assert_eq!([(); 4].map(|()| ask("fourth")), [200, 200, 200, 429]);
}

#[test]
fn in_a_cluster_each_charge_waits_for_a_replica_of_its_own_master() {
    let _alone = alone();
    let redis = RedisCluster::start();
    let application = Ledger::start();
    let limit = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 3/hour}";
    let place = format!("url: {}, mode: cluster, timeout: 2s, wait: 1", redis.urls());
    let gateway = Gateway::start(config(&application.url(), &place, DENY, limit));
    eventually("the cluster is found", || store_up(&gateway));
    let clock = application.clock();
    let ask = |key: String| Caller::default().call(gateway.address(), "/", &key, clock).expect("an answer");
    assert_eq!((0..20).filter(|number| ask(format!("{RAW}-before-{number}")) == 200).count(), 20);

    redis.nodes[4].pause();
    let answers: Vec<u16> = (0..40).map(|number| ask(format!("{RAW}-{number}"))).collect();
    let (passed, failed) = answers.iter().partition::<Vec<u16>, _>(|status| **status == 200);
    assert!(!passed.is_empty() && failed.iter().all(|status| *status == 503) && !failed.is_empty(), "{answers:?}");
    redis.nodes[4].resume();
    eventually("all servers count as up", || store_up(&gateway));
    assert_eq!((0..20).filter(|number| ask(format!("{RAW}-after-{number}")) == 200).count(), 20);
}

#[test]
fn with_sentinels_a_charge_waits_for_the_replica_of_the_master() {
    let _alone = alone();
    let redis = RedisSentinels::start();
    let application = Ledger::start();
    let limit = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 3/hour}";
    let place = format!("url: {}, mode: sentinel, timeout: 2s, wait: 1", redis.urls());
    let gateway = Gateway::start(config(&application.url(), &place, DENY, limit));
    eventually("the master is found", || store_up(&gateway));
    let clock = application.clock();
    let ask = |key: &str| Caller::default().call(gateway.address(), "/", &format!("{RAW}-{key}"), clock);
    assert_eq!([(); 4].map(|()| ask("first")), [Some(200), Some(200), Some(200), Some(429)]);
    redis.servers[1].pause();
    assert_eq!(ask("second"), Some(503));
    redis.servers[1].resume();
    eventually("the master counts as up", || store_up(&gateway));
    assert_eq!([(); 3].map(|()| ask("second")), [Some(200), Some(200), Some(429)]);
}

/// Kills a master under load, and lets its replica decide. Returns how many requests passed beyond the limit.
fn beyond_the_limit_after_a_failover(wait: u32, round: u64) -> usize {
    const MOST: usize = 4000;
    let mut master = RedisServer::with_options(&["--repl-diskless-sync-delay", "0"]);
    let replica = replica_of(&master);
    let application = Ledger::start();
    let limit = format!("limits:\n  - {{name: of-the-test, key: header.x-key, rate: {MOST}/hour, leases: off}}");
    let gateway = |server: &RedisServer, wait: u32| {
        let redis = format!("url: \"{}\", timeout: 1s, wait: {wait}", server.url());
        Gateway::start(config(&application.url(), &redis, DENY, &limit))
    };
    let before = gateway(&master, wait);
    eventually("Redis is found", || store_up(&before));
    let (clock, is_over, passed) = (application.clock(), AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut caller = Caller::default();
                while !is_over.load(Ordering::Relaxed) {
                    let status = caller.call(before.address(), "/", RAW, clock);
                    passed.fetch_add(usize::from(status == Some(200)), Ordering::Relaxed);
                }
            });
        }
        let some = 20 + usize::try_from(round).expect("few") * 37 % 200;
        eventually("some have passed", || passed.load(Ordering::Relaxed) >= some);
        master.kill();
        is_over.store(true, Ordering::Relaxed);
    });
    let passed = passed.into_inner();
    assert!(passed < MOST, "the limit was reached before the master was killed");
    replica.cli(&["REPLICAOF", "NO", "ONE"]);
    let after = gateway(&replica, 0);
    eventually("the replica is found", || store_up(&after));
    let mut caller = Caller::default();
    let more = (0..=MOST).take_while(|_| caller.call(after.address(), "/", RAW, clock) == Some(200)).count();
    (passed + more).saturating_sub(MOST)
}

/// How many requests a failover lets pass too many, with and without waiting for the replica.
#[test]
#[ignore = "measures"]
#[expect(clippy::print_stdout, reason = "the table of the book")]
fn what_a_killed_master_loses() {
    let _alone = alone();
    for wait in [0, 1] {
        let mut beyond: Vec<usize> = (0..20).map(|round| beyond_the_limit_after_a_failover(wait, round)).collect();
        beyond.sort_unstable();
        let lossy = beyond.iter().filter(|beyond| **beyond > 0).count();
        println!("wait: {wait}: lost something in {lossy} of 20 failovers, {} at most", beyond[19]);
        assert!(wait == 0 || beyond[19] == 0, "{beyond:?}");
    }
}
