//! Six nodes: keys in different slots are decided all or none, and a dead master is replaced.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::site::{RAW, alone, config, store_up};
use crate::state;
use crate::support::{Caller, Gateway, Ledger, RedisCluster, Request, StopOnDrop, Stopwatch, eventually, repeat_until};

fn gateways(redis: &RedisCluster, application: &Ledger, timeout: &str, store: &str, limits: &str) -> [Gateway; 2] {
    let place = format!("url: {}, mode: cluster, timeout: {timeout}", redis.urls());
    let config = config(&application.url(), &place, store, limits);
    let gateways = [Gateway::start(&config), Gateway::start(&config)];
    eventually("both have found the cluster", || gateways.iter().all(store_up));
    gateways
}

#[test]
fn limits_in_different_slots_are_charged_all_or_none_and_never_let_more_pass() {
    let _alone = alone();
    let redis = RedisCluster::start();
    let application = Ledger::start();
    // Three keys of each request, in three slots; and one that all share.
    let limits = "limits:
  - {name: wide-of-the-test, key: [], rate: 150/hour}
  - {name: user-of-the-test, key: header.x-key, rate: 10/hour}
  - {name: host-of-the-test, key: [host, header.x-key], rate: 10/hour}
  - {name: path-of-the-test, key: [path, header.x-key], rate: 7/hour}";
    let gateways = gateways(&redis, &application, "10s", "  on_failure: deny", limits);
    let clock = application.clock();
    let passed: usize = thread::scope(|scope| {
        let ask = |number: usize| {
            let address = gateways[number % 2].address();
            scope.spawn(move || {
                let mut callers: Vec<Caller> = (0..8).map(|_| Caller::default()).collect();
                let mut passed = 0;
                for round in 0..40 {
                    let path = ["/one", "/two"][round % 2];
                    for (place, caller) in callers.iter_mut().enumerate() {
                        caller.ask(address, path, &format!("{RAW}-{}", (place + round) % 10), clock);
                    }
                    for caller in &mut callers {
                        let status = caller.answer().expect("an answer");
                        assert!(matches!(status, 200 | 429), "{status}");
                        passed += usize::from(status == 200);
                    }
                }
                passed
            })
        };
        let threads: Vec<_> = (0..8).map(ask).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic here")).sum()
    });
    let arrivals = application.arrivals();
    assert_eq!(arrivals.len(), passed);
    let count = |key: &str, path: Option<&str>| {
        arrivals.iter().filter(|line| line.key == key && path.is_none_or(|path| line.target == path)).count()
    };
    for key in 0..10 {
        let key = format!("{RAW}-{key}");
        assert!(count(&key, None) <= 10, "{} of {key}", count(&key, None));
        assert!(count(&key, Some("/one")) <= 7 && count(&key, Some("/two")) <= 7);
    }
    // Charges of requests that another key refused were taken back: asked one after another, each client gets the rest
    // of its ten, and no more.
    let mut left = Caller::default();
    for key in 0..10 {
        let key = format!("{RAW}-{key}");
        for path in ["/one", "/two"] {
            while left.call(gateways[key.len() % 2].address(), path, &key, clock) == Some(200) {}
        }
        let arrivals = application.arrivals();
        let of_key = arrivals.iter().filter(|arrival| arrival.key == key);
        assert_eq!(of_key.count(), 10, "{key}");
    }
    // One key alone refuses: the response names exactly the limits that deny.
    let key = format!("{RAW}-named");
    let ask = || Request::new(gateways[0].address(), "GET", "/one").header("X-Key", &key).send();
    assert_eq!((0..7).map(|_| ask().status).collect::<Vec<_>>(), [200; 7]);
    let denied = ask();
    assert_eq!((denied.status, &denied.json()["violated-policies"]), (429, &serde_json::json!(["path-of-the-test"])));
    for node in redis.masters() {
        state::is_clean(node, 150);
    }
}

#[test]
fn requests_go_on_while_a_master_of_the_cluster_is_replaced() {
    let _alone = alone();
    let mut redis = RedisCluster::start();
    let application = Ledger::start();
    let limit = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 20/hour}";
    let gateways = gateways(&redis, &application, "100ms", "  on_failure: local\n  nodes: 2", limit);
    let clock = application.clock();
    let (over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let ended = StopOnDrop(&over);
        let clients: Vec<_> = (0..8)
            .map(|number: usize| {
                let (address, over, asked) = (gateways[number % 2].address(), &over, &asked);
                scope.spawn(move || {
                    let mut caller = Caller::default();
                    let mut slowest = Duration::ZERO;
                    repeat_until(
                        || over.load(Ordering::SeqCst),
                        Duration::from_millis(2),
                        || {
                            let one = Stopwatch::start();
                            let key = format!("{RAW}-{}", fastrand::usize(..60));
                            let status = caller.call(address, "/", &key, clock);
                            assert!(matches!(status, Some(200 | 429)), "{status:?}");
                            slowest = slowest.max(one.elapsed());
                            asked.fetch_add(1, Ordering::SeqCst);
                        },
                    );
                    slowest
                })
            })
            .collect();
        eventually("all ask", || asked.load(Ordering::SeqCst) > 200);
        redis.nodes[0].kill();
        eventually("its replica is a master", || redis.nodes[3].cli(&["ROLE"]).starts_with("master"));
        eventually("the cluster is whole", || redis.nodes[3].cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok"));
        let elected = Stopwatch::start();
        eventually("the gateways have found the new master", || gateways.iter().all(store_up));
        assert!(elected.elapsed() < Duration::from_secs(1), "{:?}", elected.elapsed());
        drop(ended);
        for client in clients {
            let slowest = client.join().expect("every request is answered");
            // The election takes more than a second: no request waits for it.
            assert!(slowest < Duration::from_millis(500), "a request took {slowest:?}");
        }
    });
    // From now on every key is one limit again, for both gateways together.
    for number in 0..12 {
        let key = format!("{RAW}-after-{number}");
        let ask = |number: usize| Caller::default().call(gateways[number % 2].address(), "/", &key, clock);
        assert_eq!((0..24).filter(|number| ask(*number) == Some(200)).count(), 20, "{key}");
    }
    for key in 0..60 {
        let key = format!("{RAW}-{key}");
        let passed = application.arrivals().iter().filter(|arrival| arrival.key == key).count();
        // At most 20 by Redis, and ten at each gateway during the outage.
        assert!(passed <= 20 + 20, "{passed} of {key}");
    }
    for node in redis.masters() {
        state::is_clean(node, 20);
    }
}

#[test]
fn what_was_only_reserved_for_a_moment_refuses_nobody_afterwards() {
    let _alone = alone();
    let redis = RedisCluster::start();
    let application = Ledger::start();
    let limits = "limits:
  - {name: user-of-the-test, key: header.x-key, rate: 2/hour}
  - {name: path-of-the-test, key: [path, header.x-key], rate: 1/hour}";
    let gateways = gateways(&redis, &application, "10s", "  on_failure: deny", limits);
    let clock = application.clock();
    let keys: Vec<String> = (0..20).map(|number| format!("{RAW}-{number}")).collect();
    for key in &keys {
        assert_eq!(Caller::default().call(gateways[0].address(), "/one", key, clock), Some(200));
        // The limit of the path is used up, and the other gateway does not know it yet. So each of these requests reserves
        // the last one of the user for a moment, in which a request for another path may be refused.
        let mut callers: Vec<Caller> = (0..24).map(|_| Caller::default()).collect();
        for caller in &mut callers {
            caller.ask(gateways[1].address(), "/one", key, clock);
        }
        let mut others: Vec<Caller> = (0..1).map(|_| Caller::default()).collect();
        for caller in &mut others {
            caller.ask(gateways[0].address(), "/two", key, clock);
        }
        assert!(callers.iter_mut().all(|caller| caller.answer() == Some(429)));
        assert!(others.iter_mut().all(|caller| caller.answer().is_some()));
    }
    let passed = |key: &str| {
        let mut arrivals = application.arrivals().into_iter();
        arrivals.any(|arrival| arrival.key == key && arrival.target == "/two")
    };
    for key in &keys {
        // A gateway that was refused hears of what was given back by a message.
        let asked = Stopwatch::start();
        eventually("one of two is left", || {
            passed(key) || Caller::default().call(gateways[0].address(), "/two", key, clock) == Some(200)
        });
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    }
}
