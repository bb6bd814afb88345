//! What several gateways on one Redis know together is answered by any of them, also when one has gone.

use serde_json::{Value, json};

use crate::site::{RAW, Site, alone, ask_admin, config, store_up};
use crate::support::{Gateway, Ledger, RedisCluster, Request, Response, Stopwatch, eventually};

pub(super) const RULES: &str = "\
routes:
  - name: login
    match: /login
    limits:
      - {name: pace-of-the-test, key: [client_ip, param.username], rate: 2/hour}
      - {name: token-of-the-test, key: header.x-key, rate: 100/hour}";

pub(super) fn login(gateway: &Gateway) -> Response {
    Request::new(gateway.address(), "POST", "/login").header("x-key", RAW).form("username=alice").send()
}

pub(super) fn json_of(gateway: &Gateway, path: &str) -> Value {
    let answer = ask_admin(gateway, "GET", &format!("/api/v1/{path}"));
    if answer.status == 200 { answer.json() } else { Value::Null }
}

/// All denials of the limit in the history of the last hour.
pub(super) fn denied(gateway: &Gateway) -> u64 {
    let history = json_of(gateway, "history?minutes=60");
    let steps = history["limits"]["pace-of-the-test"]["denied"].as_array().cloned().unwrap_or_default();
    steps.iter().filter_map(Value::as_u64).sum()
}

/// The denials and requests of the busiest key of the limit, and its name.
pub(super) fn busiest(gateway: &Gateway) -> (u64, u64, String) {
    let top = json_of(gateway, "top?limit=pace-of-the-test");
    let count = |name: &str| top[0][name].as_u64().unwrap_or_default();
    (count("denied"), count("requests"), top[0]["key"]["param.username"].as_str().unwrap_or_default().to_owned())
}

pub(super) fn story(gateway: &Gateway, answer: &Response) -> Value {
    json_of(gateway, &format!("requests/{}", answer.header("x-request-id").expect("an id")))
}

#[test]
fn any_gateway_answers_for_all_within_five_seconds_and_for_one_that_was_killed() {
    let _alone = alone();
    let mut site = Site::start(2, "timeout: 10s", "", RULES);
    let answers: Vec<_> = (0..6).map(|_| login(&site.gateways[0])).collect();
    let begun = Stopwatch::start();
    let (first, second) = (&site.gateways[0], &site.gateways[1]);
    assert_eq!(story(first, &answers[5])["limits"][0]["key"]["param.username"], "alice");
    eventually("the other gateway knows", || {
        denied(second) == 4 && busiest(second).0 == 4 && !story(second, &answers[5]).is_null()
    });
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    let told = story(second, &answers[5]);
    assert_eq!((&told["decision"], &told["client"]), (&json!("denied"), &json!("127.0.0.1")));
    assert!(told["limits"][0]["key"]["param.username"].as_str().expect("a mask").starts_with("a***"), "{told}");
    assert!(!told.to_string().contains("alice") && !told.to_string().contains(RAW), "{told}");
    assert_eq!(json_of(second, "history")["scope"], "all");

    // What both have counted is added up, and the name is in clear where it was seen.
    assert_eq!(login(second).status, 429);
    eventually("both are counted", || [first, second].iter().all(|gateway| denied(gateway) == 5));
    eventually("both are counted by key", || {
        [first, second].iter().all(|gateway| busiest(gateway) == (5, 7, "alice".to_owned()))
    });
    let top = json_of(second, "top");
    assert_eq!((&top[0]["key"]["client_ip"], &top[0]["denied"]), (&json!("127.0.0.1"), &json!(5)));

    site.gateways[0].kill();
    let second = &site.gateways[1];
    assert_eq!((denied(second), busiest(second).0), (5, 5));
    assert!(!story(second, &answers[3]).is_null());
    // One that starts now knows it too.
    site.add(&[]);
    eventually("a new gateway knows", || denied(&site.gateways[2]) == 5 && busiest(&site.gateways[2]).0 == 5);
    site.gateways.remove(0);
}

#[test]
fn without_redis_each_answers_for_itself_and_says_so() {
    let _alone = alone();
    let mut site = Site::start(2, "timeout: 200ms", "", RULES);
    for _ in 0..5 {
        login(&site.gateways[0]);
    }
    eventually("the other gateway knows", || denied(&site.gateways[1]) == 3);
    site.redis.kill();
    let scope = |gateway: usize| json_of(&site.gateways[gateway], "history")["scope"].clone();
    assert_eq!((scope(0), denied(&site.gateways[0])), (json!("this_gateway"), 3));
    assert_eq!((scope(1), denied(&site.gateways[1])), (json!("this_gateway"), 0));
    let top = ask_admin(&site.gateways[1], "GET", "/api/v1/top");
    assert_eq!((top.status, top.header("x-portcullis-scope")), (200, Some("this_gateway")));
    let unknown = ask_admin(&site.gateways[1], "GET", "/api/v1/requests/unknown");
    assert!(unknown.status == 404 && unknown.text().contains("Redis does not answer"), "{}", unknown.text());
    site.redis.restart();
    eventually("redis is back", || site.gateways.iter().all(store_up));
    eventually("what was counted is told again", || denied(&site.gateways[1]) == 3 && scope(1) == "all");
}

#[test]
fn in_a_cluster_too() {
    let _alone = alone();
    let redis = RedisCluster::start();
    let application = Ledger::start();
    let place = format!("url: {}, mode: cluster, timeout: 10s", redis.urls());
    let config = config(&application.url(), &place, "", RULES);
    let gateways = [Gateway::start(&config), Gateway::start(&config)];
    eventually("both have found the cluster", || gateways.iter().all(store_up));
    let answers: Vec<_> = (0..4).map(|_| login(&gateways[0])).collect();
    eventually("the other gateway knows", || {
        denied(&gateways[1]) == 2 && busiest(&gateways[1]).0 == 2 && !story(&gateways[1], &answers[3]).is_null()
    });
}
