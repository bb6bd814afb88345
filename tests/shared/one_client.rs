//! All limits of a client in one hash slot of a cluster: `store.redis.hash_slot: client`.

use std::collections::{BTreeMap, BTreeSet};

use crate::site::{alone, ask_admin, config, store_up};
use crate::state;
use crate::support::{Caller, Gateway, Ledger, RedisCluster, eventually};

const LIMITS: &str = "client_ip: {trusted_proxies: [127.0.0.0/8], header: x-key}
limits:
  - {name: client-of-the-test, key: client_ip, rate: 2/hour}
  - {name: path-of-the-test, key: [path, client_ip], rate: 1/hour}
  - {name: all-of-the-test, key: [], rate: 1000/hour, shadow: true}";

fn gateways(redis: &RedisCluster, application: &Ledger) -> [Gateway; 2] {
    let place = format!("url: {}, mode: cluster, timeout: 10s, hash_slot: client", redis.urls());
    let config = config(&application.url(), &place, "  on_failure: deny", LIMITS);
    let gateways = [Gateway::start(&config), Gateway::start(&config)];
    eventually("both have found the cluster", || gateways.iter().all(store_up));
    gateways
}

/// What stands in the braces of the names of counted keys, and how many of them there are.
fn tags(redis: &RedisCluster) -> BTreeMap<String, usize> {
    let mut tags = BTreeMap::new();
    for name in redis
        .masters()
        .iter()
        .flat_map(|master| master.cli(&["KEYS", "portcullis:{*}:*"]).lines().map(str::to_owned).collect::<Vec<_>>())
    {
        let (tag, digits) = name["portcullis:{".len()..].split_once("}:").expect("braces");
        if digits.len() == 32 && digits.starts_with(tag) {
            *tags.entry(tag.to_owned()).or_default() += 1;
        }
    }
    tags
}

#[test]
fn limits_of_one_client_are_decided_in_one_step() {
    let _alone = alone();
    let redis = RedisCluster::start();
    let application = Ledger::start();
    let gateways = gateways(&redis, &application);
    let clock = application.clock();
    let ask = |gateway: usize, path: &str, client: &str| {
        Caller::default().call(gateways[gateway].address(), path, client, clock)
    };
    let clients: Vec<String> = (1..=20).map(|number| format!("198.51.100.{number}")).collect();
    for client in &clients {
        assert_eq!(ask(0, "/one", client), Some(200));
        // The limit of the path is used up, and the other gateway does not know it yet. None of these requests reserves the last
        // one of the client, even for a moment: the request for another path passes.
        let mut callers: Vec<Caller> = (0..24).map(|_| Caller::default()).collect();
        for caller in &mut callers {
            caller.ask(gateways[1].address(), "/one", client, clock);
        }
        assert_eq!(ask(0, "/two", client), Some(200), "{client}");
        assert!(callers.iter_mut().all(|caller| caller.answer() == Some(429)));
        assert_eq!(ask(0, "/three", client), Some(429), "{client}");
    }
    // Of each client three keys were charged; the limit for all has a key without a client.
    let tags = tags(&redis);
    assert_eq!(tags.len(), clients.len() + 1, "{tags:?}");
    assert_eq!(tags.values().copied().collect::<BTreeSet<_>>(), [1, 3].into(), "{tags:?}");
    for node in redis.masters() {
        state::is_clean(node, 1000);
    }
}

#[test]
fn an_operator_finds_the_key_of_a_client_whatever_decides_its_slot() {
    let _alone = alone();
    let redis = RedisCluster::start();
    let application = Ledger::start();
    let gateways = gateways(&redis, &application);
    let clock = application.clock();
    let ask = |gateway: usize| Caller::default().call(gateways[gateway].address(), "/one", "198.51.100.7", clock);
    assert_eq!([ask(0), ask(1)], [Some(200), Some(429)]);
    for limit in
        ["client-of-the-test/state?client_ip=198.51.100.7", "path-of-the-test/state?client_ip=198.51.100.7&path=/one"]
    {
        let reset = ask_admin(&gateways[0], "DELETE", &format!("/api/v1/limits/{limit}"));
        assert!(matches!(reset.status, 200 | 204), "{reset:?}");
    }
    eventually("both know that it was reset", || ask(1) == Some(200));
}
