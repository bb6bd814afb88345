//! A master dies, and the sentinels name another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::site::{RAW, alone, config, store_up};
use crate::state;
use crate::support::{Caller, Gateway, Ledger, RedisSentinels, StopOnDrop, Stopwatch, eventually, repeat_until};

const LIMIT: &str = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 20/hour}";

#[test]
fn requests_go_on_while_the_sentinels_elect_a_new_master() {
    let _alone = alone();
    let mut redis = RedisSentinels::start();
    let application = Ledger::start();
    let place = format!("url: {}, mode: sentinel, timeout: 100ms", redis.urls());
    let config = config(&application.url(), &place, "  on_failure: local\n  nodes: 2", LIMIT);
    let gateways = [Gateway::start(&config), Gateway::start(&config)];
    eventually("both have found the master", || gateways.iter().all(store_up));
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
                            let key = format!("{RAW}-{}", fastrand::usize(..20));
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
        redis.servers[0].kill();
        eventually("the replica is the master", || redis.servers[1].cli(&["ROLE"]).starts_with("master"));
        // They look at it once a second before they say so.
        eventually("the sentinels tell of it", || redis.agree_on_master(&redis.servers[1]));
        let elected = Stopwatch::start();
        eventually("the gateways have found the new master", || gateways.iter().all(store_up));
        assert!(elected.elapsed() < Duration::from_secs(1), "{:?}", elected.elapsed());
        let listening = || redis.servers[1].cli(&["PUBSUB", "NUMSUB", "portcullis:resets"]);
        eventually("both listen to the new one", || listening().ends_with('2'));
        drop(ended);
        for client in clients {
            let slowest = client.join().expect("every request is answered");
            // The election takes more than a second: no request waits for it.
            assert!(slowest < Duration::from_millis(500), "a request took {slowest:?}");
        }
    });
    // 20 by Redis at most, and, where its death lost a copy of some, as many again of the new master; ten at each
    // gateway meanwhile.
    for key in 0..20 {
        let key = format!("{RAW}-{key}");
        let passed = application.arrivals().iter().filter(|arrival| arrival.key == key).count();
        assert!(passed <= 20 + 20, "{passed} of {key}");
    }
    // From now on one limit again, for both together.
    let key = format!("{RAW}-after");
    let ask = |number: usize| Caller::default().call(gateways[number % 2].address(), "/", &key, clock);
    assert_eq!((0..30).filter(|number| ask(*number) == Some(200)).count(), 20);
    state::is_clean(&redis.servers[1], 20);
}
