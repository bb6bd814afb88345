//! What `/readyz` answers under each policy during an outage.

use crate::site::{RAW, Site, alone, ask_admin, store_up};
use crate::support::eventually;

const LIMIT: &str = "limits:\n  - {name: of-the-test, key: header.x-key, rate: 4/hour}";

/// The status of `/readyz` and of some requests during an outage.
#[track_caller]
fn away(policy: &str) -> (u16, Vec<u16>) {
    let mut site = Site::start(1, "timeout: 100ms", &format!("  on_failure: {policy}"), LIMIT);
    assert_eq!(ask_admin(&site.gateways[0], "GET", "/readyz").status, 200);
    site.redis.kill();
    eventually("the gateway says that Redis is away", || {
        site.status(0, "/", &format!("{RAW}-other"));
        !store_up(&site.gateways[0])
    });
    let ready = ask_admin(&site.gateways[0], "GET", "/readyz");
    assert!(ready.text().contains("redis"), "{}", ready.text());
    assert_eq!(ask_admin(&site.gateways[0], "GET", "/healthz").status, 200);
    let statuses = (0..6).map(|_| site.status(0, "/", RAW)).collect();
    let arrived = site.application.arrivals().iter().filter(|arrival| arrival.key == RAW).count();
    site.redis.restart();
    eventually("the gateway says that Redis is back", || {
        store_up(&site.gateways[0]) && ask_admin(&site.gateways[0], "GET", "/readyz").status == 200
    });
    let passed = |statuses: &Vec<u16>| statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(arrived, passed(&statuses));
    (ready.status, statuses)
}

#[test]
fn under_deny_a_gateway_without_redis_is_not_ready() {
    let _alone = alone();
    assert_eq!(away("deny"), (503, vec![503; 6]));
}

#[test]
fn under_allow_everyone_passes_meanwhile() {
    let _alone = alone();
    assert_eq!(away("allow"), (200, vec![200; 6]));
}

#[test]
fn under_local_the_limit_holds_meanwhile() {
    let _alone = alone();
    assert_eq!(away("local"), (200, vec![200, 200, 200, 200, 429, 429]));
}
