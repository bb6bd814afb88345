//! Bans: keys that reached a limit, and what is banned by hand.

use serde_json::Value;
use serde_json::json;

use crate::support::Gateway;
use crate::support::Origin;
use crate::support::RedisServer;
use crate::support::Request;
use crate::support::Response;
use crate::support::eventually;

/// In memory, and on a Redis: what bans do is the same.
fn on_each_store(config: &str, check: impl Fn(&Gateway, &Origin)) {
    let redis = RedisServer::start();
    for store in [String::new(), format!("store: {{redis: {{url: \"{}\", timeout: 5s}}}}\n", redis.url())] {
        let origin = Origin::start();
        let config = format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{store}{config}", origin.url());
        check(&Gateway::start(config), &origin);
    }
}

fn metric(gateway: &Gateway) -> String {
    let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("portcullis_bans "));
    line.unwrap_or_else(|| panic!("no portcullis_bans in\n{metrics}")).to_owned()
}

#[track_caller]
fn wait(response: &Response) -> u64 {
    response.header("retry-after").and_then(|value| value.parse().ok()).expect("a Retry-After")
}

#[test]
fn whoever_reaches_a_limit_that_bans_is_banned_wherever_it_stands() {
    let config = "\
limits: [{name: per-client, key: header.x-key, rate: 2/second, then: {ban: [1h, 24h]}}]
routes:
  - {match: /a, limits: [{name: other, key: header.x-key, rate: 100/second}]}
";
    on_each_store(config, |gateway, origin| {
        let ask = |path: &str, key: &str| gateway.get(path).header("X-Key", key).send();
        assert_eq!(metric(gateway), "0");
        assert_eq!((ask("/", "alice").status, ask("/", "alice").status), (200, 200));
        let trips = ask("/trips", "alice");
        assert_eq!(trips.status, 429);
        assert!((3590..=3600).contains(&wait(&trips)), "{}", wait(&trips));
        let line = gateway.log_line("/trips");
        assert_eq!((&line["decision"], &line["limit"]), (&json!("banned"), &json!("per-client")));
        for path in ["/b", "/a"] {
            let banned = ask(path, "alice");
            assert_eq!((banned.status, banned.header("content-type")), (429, Some("application/problem+json")));
            assert!((3590..=3600).contains(&wait(&banned)), "{}", wait(&banned));
            let document: Value = serde_json::from_slice(&banned.body).expect("JSON");
            assert_eq!(document["violated-policies"], json!(["per-client"]));
            assert_eq!(gateway.log_line(path)["decision"], "banned");
        }
        assert_eq!(ask("/a", "bob").status, 200);
        assert_eq!((metric(gateway), origin.count()), ("1".to_owned(), 3));
    });
}

#[test]
fn a_ban_ends_by_itself_and_the_next_is_longer() {
    let config = "limits: [{name: brief, key: header.x-key, rate: 1 per 1 second, then: {ban: [1s, 1h]}}]\n";
    on_each_store(config, |gateway, _| {
        let ask = || gateway.get("/").header("X-Key", "alice").send();
        assert_eq!(ask().status, 200);
        assert_eq!(wait(&ask()), 1);
        eventually("the ban ends", || ask().status == 200);
        let second = ask();
        assert!(second.status == 429 && wait(&second) > 3500, "{}", wait(&second));
    });
}

#[test]
fn a_shadow_bans_nobody() {
    let config = "limits: [{name: shy, key: [], rate: 1/hour, shadow: true, then: {ban: 1h}}]\n";
    on_each_store(config, |gateway, _| {
        for _ in 0..3 {
            assert_eq!(gateway.get("/").status(), 200);
        }
        assert_eq!(metric(gateway), "0");
    });
}
