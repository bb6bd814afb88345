//! Bans by limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::{Answer, Gateway, Origin, RedisServer, Request, Response, eventually};

/// In memory, and on a Redis: what bans do is the same.
pub(crate) fn on_each_store(config: &str, check: impl Fn(&Gateway, &Origin)) {
    let redis = RedisServer::start();
    for store in [String::new(), format!("store: {{redis: {{url: \"{}\", timeout: 5s}}}}\n", redis.url())] {
        let origin = Origin::start();
        let config = format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{store}{config}", origin.url());
        check(&Gateway::start(config), &origin);
    }
}

pub(crate) fn metric(gateway: &Gateway) -> String {
    let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("portcullis_bans "));
    line.unwrap_or_else(|| panic!("no portcullis_bans in\n{metrics}")).to_owned()
}

#[track_caller]
pub(crate) fn wait(response: &Response) -> u64 {
    response.header("retry-after").and_then(|value| value.parse().ok()).expect("a Retry-After")
}

pub(crate) fn api(gateway: &Gateway, method: &str, path: &str) -> Request {
    gateway.admin_request(method, &format!("/api/v1/bans{path}"))
}

pub(crate) fn post(gateway: &Gateway, document: &Value) -> (u16, Value) {
    let answer = api(gateway, "POST", "").json(&document.to_string()).send();
    (answer.status, serde_json::from_slice(&answer.body).expect("JSON"))
}

pub(crate) fn listed(gateway: &Gateway) -> Value {
    serde_json::from_slice(&api(gateway, "GET", "").send().body).expect("JSON")
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
        let id = listed(gateway)[0]["id"].clone();
        assert_eq!((&line["ban"], gateway.log_line("/")["ban"].is_null()), (&id, true));
        let bans = || gateway.log_messages().into_iter().filter(|said| said.contains(" bans ")).collect::<Vec<_>>();
        eventually("the ban is logged", || !bans().is_empty());
        let said = bans();
        assert!(
            matches!(&said[..], [said] if said.starts_with("per-client bans header.x-key=***") && said.ends_with(" for 1h")),
            "{said:?}"
        );
        let line = gateway.stderr().into_iter().find(|line| line.contains(" bans ")).expect("just found");
        let line: Value = serde_json::from_str(&line).expect("JSON");
        let named = ["level", "ban", "limit", "client"].map(|field| line[field].clone());
        assert_eq!(named, [json!("INFO"), id.clone(), json!("per-client"), json!("127.0.0.1")]);
        for path in ["/b", "/a"] {
            let banned = ask(path, "alice");
            assert_eq!((banned.status, banned.header("content-type")), (429, Some("application/problem+json")));
            assert!((3590..=3600).contains(&wait(&banned)), "{}", wait(&banned));
            let document: Value = serde_json::from_slice(&banned.body).expect("JSON");
            assert_eq!(document["violated-policies"], json!(["per-client"]));
            let line = gateway.log_line(path);
            assert_eq!((&line["decision"], &line["ban"]), (&json!("banned"), &id));
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
fn whoever_begins_a_ban_is_told_how_long_it_lasts_whatever_was_counted() {
    let config = "limits: [{name: slow, key: header.x-key, rate: 1/hour, then: {ban: [5s, 20s]}}]\n";
    on_each_store(config, |gateway, _| {
        let ask = || gateway.get("/").header("X-Key", "alice").send();
        assert_eq!(ask().status, 200);
        assert_eq!([wait(&ask()), wait(&ask())], [5, 5]);
        eventually("the ban ends, and the next begins", || wait(&ask()) == 20);
    });
}

const GUESSES: &str = "\
routes:
  - match: /login
    outcome: {success: {status: 302}}
    limits: [{name: guesses, key: header.x-key, rate: 3/hour, count: failures, then: {ban: 1h}}]
";

/// In memory, and on a Redis: six logins at once where three guesses are allowed. Three are let through, the others are to come again.
fn logins_at_once(status: u16, check: impl Fn(&Gateway)) {
    let redis = RedisServer::start();
    for store in [String::new(), format!("store: {{redis: {{url: \"{}\", timeout: 5s}}}}\n", redis.url())] {
        let refused = Arc::new(AtomicUsize::new(0));
        let others = Arc::clone(&refused);
        let origin = Origin::answering(move |_| {
            // All three slots are in flight until the others were refused.
            eventually("three are refused", || others.load(Ordering::SeqCst) == 3);
            Answer::new(status, &[], "")
        });
        let config = format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{store}{GUESSES}", origin.url());
        let gateway = Gateway::start(config);
        let answers: Vec<_> = thread::scope(|scope| {
            let ask = || {
                let answer = gateway.get("/login").header("X-Key", "alice").send();
                refused.fetch_add(usize::from(answer.status != status), Ordering::SeqCst);
                answer
            };
            let logins: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
            logins.into_iter().map(|login| login.join().expect("an answer")).collect()
        });
        assert_eq!(answers.iter().filter(|answer| answer.status == status).count(), 3);
        for refused in answers.iter().filter(|answer| answer.status != status) {
            assert_eq!((refused.status, wait(refused)), (429, 1));
        }
        check(&gateway);
    }
}

#[test]
fn who_logs_in_beside_slots_in_flight_is_not_banned() {
    logins_at_once(302, |gateway| {
        eventually("it was looked into", || gateway.get("/login").header("X-Key", "alice").status() == 302);
        assert_eq!(metric(gateway), "0");
    });
}

#[test]
fn who_guesses_beside_slots_in_flight_is_banned_when_those_were_guesses() {
    logins_at_once(200, |gateway| {
        eventually("the ban begins", || metric(gateway) == "1");
        let banned = gateway.get("/login").header("X-Key", "alice").send();
        assert!(wait(&banned) > 3590, "{}", wait(&banned));
    });
}
