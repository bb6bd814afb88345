//! Bans by limits, and bans by operators.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::support::Answer;
use crate::support::Gateway;
use crate::support::Origin;
use crate::support::RedisServer;
use crate::support::Request;
use crate::support::Response;
use crate::support::Stopwatch;
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

fn api(gateway: &Gateway, method: &str, path: &str) -> Request {
    Request::new(gateway.admin(), method, &format!("/api/v1/bans{path}")).host(&gateway.admin().to_string())
}

fn post(gateway: &Gateway, document: &Value) -> (u16, Value) {
    let answer = api(gateway, "POST", "").json(&document.to_string()).send();
    (answer.status, serde_json::from_slice(&answer.body).expect("JSON"))
}

fn listed(gateway: &Gateway) -> Value {
    serde_json::from_slice(&api(gateway, "GET", "").send().body).expect("JSON")
}

#[test]
fn a_banned_address_may_not_enter_until_it_is_unbanned() {
    let config = "limits: [{name: all, key: client_ip, rate: 100/hour}]\n";
    on_each_store(config, |gateway, origin| {
        let (status, ban) = post(gateway, &json!({"address": "127.0.0.0/8", "for": "1h", "reason": "scans"}));
        assert_eq!(status, 201, "{ban}");
        assert_eq!((&ban["address"], &ban["reason"]), (&json!("127.0.0.0/8"), &json!("scans")));
        let denied = gateway.get("/secret").send();
        assert_eq!((denied.status, denied.header("content-type")), (403, Some("application/problem+json")));
        let page = gateway.get("/page").header("Accept", "text/html").send();
        assert_eq!((page.status, page.header("content-type")), (403, Some("text/html; charset=utf-8")));
        let line = gateway.log_line("/secret");
        assert_eq!((&line["decision"], &line["limit"]), (&json!("banned"), &Value::Null));
        assert_eq!(line["ban"], ban["id"]);
        assert!(
            !gateway.log_messages().iter().any(|said| said.contains(" bans ")),
            "an operator's ban is no ban by a limit"
        );
        assert_eq!((listed(gateway), metric(gateway)), (json!([ban]), "1".to_owned()));
        let export = api(gateway, "GET", "/export?format=nginx").send();
        assert_eq!((export.status, export.text()), (200, "deny 127.0.0.0/8;\n".to_owned()));
        assert_eq!(origin.count(), 0);

        let id = format!("/{}", ban["id"].as_str().expect("an id"));
        assert_eq!(api(gateway, "DELETE", &id).status(), 204);
        assert_eq!(gateway.get("/").status(), 200);
        let gone = api(gateway, "DELETE", &id).send();
        assert_eq!((gone.status, gone.header("content-type")), (404, Some("application/problem+json")));
        assert_eq!(listed(gateway), json!([]));
    });
}

#[test]
fn a_list_that_allows_passes_every_ban() {
    let config = "\
lists: {office: {addresses: [127.0.0.1]}}
access: {allow: [office]}
limits: [{name: all, key: [], rate: 1/hour, then: {ban: 1h}}]
";
    on_each_store(config, |gateway, _| {
        assert_eq!(post(gateway, &json!({"address": "127.0.0.1", "for": "1h"})).0, 201);
        assert_eq!(post(gateway, &json!({"limit": "all", "key": {}, "for": "1h"})).0, 201);
        assert_eq!((gateway.get("/").status(), gateway.get("/").status()), (200, 200));
    });
}

#[test]
fn a_key_is_banned_by_hand_whatever_its_limit_does_and_freed_with_its_counts() {
    let config = "\
routes:
  - match: POST /login
    limits:
      - {name: guesses, key: param.user, rate: 2/hour}
      - {name: slow, key: [], rate: 100/hour, then: {delay: 1ms}}
";
    on_each_store(config, |gateway, origin| {
        let login = |user: &str| gateway.post("/login").form(&format!("user={user}")).send();
        assert_eq!([login("alice").status, login("alice").status, login("alice").status], [200, 200, 429]);
        let wanted = json!({"limit": "guesses", "key": {"param.user": " Alice"}, "for": "2h", "reason": "called in"});
        let (status, ban) = post(gateway, &wanted);
        assert_eq!((status, &ban["limit"], &ban["key"]), (201, &json!("guesses"), &json!({"param.user": "alice"})));
        let banned = login("ALICE");
        assert!(banned.status == 429 && (7190..=7200).contains(&wait(&banned)), "{}", wait(&banned));
        assert_eq!(login("bob").status, 200);
        assert!(listed(gateway).to_string().contains(r#"{"param.user":"alice"}"#), "who may lift it sees whose it is");

        // Its counters alone are no ban.
        let state = "/api/v1/limits/guesses/state?param.user=alice";
        let reset = Request::new(gateway.admin(), "DELETE", state).host(&gateway.admin().to_string());
        assert_eq!(reset.status(), 204);
        assert_eq!(login("alice").status, 429);
        assert_eq!(api(gateway, "DELETE", &format!("/{}", ban["id"].as_str().expect("an id"))).status(), 204);
        eventually("alice may enter", || login("alice").status == 200);

        let (status, ban) = post(gateway, &json!({"limit": "slow", "key": {}, "for": "1h"}));
        assert_eq!((status, &ban["key"]), (201, &json!({})));
        assert_eq!(login("bob").status, 429);
        assert!(origin.count() >= 4);
    });
}

#[test]
fn lifting_the_ban_of_an_address_lifts_those_by_limits_too() {
    let config = "\
limits:
  - {name: knocks, key: client_ip, rate: 1/hour, then: {ban: 1h}}
  - {name: net, key: {client_ip: {v4: 24}}, rate: 1/hour, then: {ban: 1h}}
  - {name: pairs, key: [client_ip, header.x-key], rate: 1/hour, then: {ban: 1h}}
";
    on_each_store(config, |gateway, _| {
        assert_eq!([gateway.get("/").status(), gateway.get("/").status()], [200, 429]);
        assert_eq!(post(gateway, &json!({"address": "127.0.0.1", "for": "1h"})).0, 201);
        assert_eq!(listed(gateway).as_array().map(Vec::len), Some(4));
        // A network is only itself.
        assert_eq!(api(gateway, "DELETE", "?address=127.0.0.0/16").status(), 404);
        let answer = api(gateway, "DELETE", "?address=127.0.0.1").send();
        let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!((answer["lifted"].as_array().map(Vec::len), &answer["remaining"]), (Some(3), &Value::Null));
        assert_eq!(listed(gateway)[0]["limit"], "pairs");
        eventually("only the pair is denied", || gateway.get("/").header("X-Key", "other").status() == 200);
        assert_eq!(gateway.get("/").status(), 429);
    });
}

#[test]
fn nothing_is_lifted_that_was_not_named() {
    on_each_store("limits: [{name: pace, key: client_ip, rate: 5/hour}]\n", |gateway, _| {
        assert_eq!(post(gateway, &json!({"address": "203.0.113.1", "for": "1h"})).0, 201);
        for unclear in [
            "",
            "?",
            "?all",
            "?all=false",
            "?all=true&address=203.0.113.1",
            "?address=x",
            "?limit=pace",
            "?address=203.0.113.1&client_ip=203.0.113.1",
            "?address=203.0.113.1&address=203.0.113.2",
            "?adress=203.0.113.1",
        ] {
            let answer = api(gateway, "DELETE", unclear).send();
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (400, Some("application/problem+json")),
                "{unclear}"
            );
        }
        assert_eq!(listed(gateway).as_array().map(Vec::len), Some(1));
        assert_eq!(api(gateway, "DELETE", "?all=true").status(), 200);
        assert_eq!(listed(gateway), json!([]));
    });
}

#[test]
fn a_hit_on_a_banned_key_is_denied_and_charged_as_a_request_would_be() {
    let config = "\
limits:
  - {name: pace, key: client_ip, rate: 5/hour}
  - {name: tries, key: client_ip, rate: 5/hour, count: attempts}
";
    on_each_store(config, |gateway, _| {
        for limit in ["pace", "tries"] {
            let wanted = json!({"limit": limit, "key": {"client_ip": "10.0.0.1"}, "for": "1h"});
            assert_eq!(post(gateway, &wanted).0, 201);
        }
        let ask = |method: &str, path: &str| -> Value {
            let path = format!("/api/v1/limits/{path}?client_ip=10.0.0.1");
            let answer = Request::new(gateway.admin(), method, &path).host(&gateway.admin().to_string()).send();
            serde_json::from_slice(&answer.body).expect("JSON")
        };
        for (limit, remaining) in [("pace", 5), ("tries", 4)] {
            let hit = ask("POST", &format!("{limit}/hit"));
            assert_eq!(hit["allowed"], false, "{hit}");
            assert!(hit["retry_after"].as_u64().is_some_and(|left| left > 3590), "{hit}");
            let state = ask("GET", &format!("{limit}/state"));
            assert_eq!(
                (&state["rates"][0]["remaining"], &state["allowed"]),
                (&json!(remaining), &json!(false)),
                "{state}"
            );
        }
    });
}

#[test]
fn what_is_not_understood_is_said_and_bans_nobody() {
    let config =
        "limits: [{name: pace, key: client_ip, rate: 5/hour}, {name: shy, key: [], rate: 5/hour, shadow: true}]\n";
    on_each_store(config, |gateway, _| {
        let wrong = [
            (json!({}), 400, "expected JSON"),
            (json!({"address": "127.0.0.1"}), 400, "expected JSON"),
            (json!({"address": "127.0.0.1", "limit": "pace", "for": "1h"}), 400, "expected JSON"),
            (json!({"address": "localhost", "for": "1h"}), 400, "not an address"),
            (json!({"address": "0.0.0.0/0", "for": "1h", "force": true}), 400, "everyone"),
            (json!({"address": "0.0.0.0/7", "for": "1h"}), 400, "`\"force\": true`"),
            (json!({"address": "2000::/15", "for": "1h", "force": false}), 400, "/16"),
            (json!({"address": "2000::/16", "for": "1h", "force": "yes"}), 400, "expected JSON"),
            (json!({"address": "127.0.0.1", "for": "soon"}), 400, "`for`"),
            (json!({"address": "127.0.0.1", "for": "0"}), 400, "`for`"),
            (json!({"address": "127.0.0.1", "for": "1h", "reason": "a\nb"}), 400, "`reason`"),
            (json!({"limit": "pase", "key": {}, "for": "1h"}), 404, "`pace`"),
            (json!({"limit": "pace", "for": "1h"}), 400, "client_ip"),
            (json!({"limit": "shy", "for": "1h"}), 400, "shadow"),
        ];
        for (document, expected, said) in wrong {
            let (status, problem) = post(gateway, &document);
            assert_eq!(status, expected, "{document}: {problem}");
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(said)), "{document}: {problem}");
        }
        assert_eq!(api(gateway, "GET", "/export?format=fail2ban").status(), 400);
        assert_eq!((gateway.get("/").status(), metric(gateway)), (200, "0".to_owned()));
    });
}

fn on(redis: &RedisServer, origin: &Origin, rest: &str) -> Gateway {
    let store = format!("store: {{redis: {{url: \"{}\"}}}}", redis.url());
    Gateway::start(format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{store}\n{rest}", origin.url()))
}

const BANS: &str = "limits: [{name: pace, key: header.x-key, rate: 1/hour, then: {ban: [1h, 24h]}}]\n";

#[test]
fn every_gateway_sees_a_ban_and_an_unban_within_a_second() {
    let (redis, origin) = (RedisServer::start(), Origin::start());
    let gateways: Vec<_> = (0..2).map(|_| on(&redis, &origin, BANS)).collect();
    let ask = |gateway: usize, key: &str| gateways[gateway].get("/").header("X-Key", key).send();
    assert_eq!((ask(0, "alice").status, ask(0, "alice").status), (200, 429));
    let begun = Stopwatch::start();
    eventually("the other sees the ban", || listed(&gateways[1])[0]["limit"] == "pace");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let banned = ask(1, "alice");
    assert!(banned.status == 429 && wait(&banned) > 3590, "{}", wait(&banned));
    assert_eq!(listed(&gateways[0])[0]["id"], listed(&gateways[1])[0]["id"]);
    assert_eq!(post(&gateways[1], &json!({"address": "127.0.0.1", "for": "1h", "reason": "both"})).0, 201);
    let begun = Stopwatch::start();
    eventually("the other bans the address", || ask(0, "bob").status == 403);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());

    // One that starts later knows them from the start.
    let late = on(&redis, &origin, BANS);
    assert_eq!(late.get("/").status(), 403);
    assert_eq!(listed(&late).as_array().map(Vec::len), Some(2));

    let bans = listed(&gateways[0]);
    for ban in bans.as_array().expect("a list") {
        assert_eq!(api(&gateways[0], "DELETE", &format!("/{}", ban["id"].as_str().expect("an id"))).status(), 204);
    }
    let begun = Stopwatch::start();
    for gateway in [&gateways[1], &late] {
        eventually("the unban is heard", || listed(gateway) == json!([]));
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(ask(1, "alice").status, 200);
}

#[test]
fn a_ban_begun_while_redis_is_away_holds_and_is_told_when_it_is_back() {
    let (mut redis, origin) = (RedisServer::start(), Origin::start());
    let gateways: Vec<_> = (0..2).map(|_| on(&redis, &origin, BANS)).collect();
    let ask = |gateway: usize, key: &str| gateways[gateway].get("/").header("X-Key", key).send();
    assert_eq!((ask(0, "before").status, ask(0, "before").status), (200, 429));
    redis.kill();
    assert_eq!(
        post(&gateways[0], &json!({"limit": "pace", "key": {"header.x-key": "an operator"}, "for": "1h"})).0,
        201
    );
    eventually("alice is banned", || ask(0, "alice").status == 429);
    assert_eq!((ask(0, "before").status, ask(0, "an operator").status), (429, 429));
    // It comes back with nothing.
    redis.restart();
    eventually("the other hears of all of them", || listed(&gateways[1]).as_array().map(Vec::len) == Some(3));
    for key in ["alice", "before", "an operator"] {
        let banned = ask(1, key);
        assert!(banned.status == 429 && wait(&banned) > 3500, "{key}: {}", wait(&banned));
    }
}

#[test]
fn a_burst_over_two_gateways_is_one_step() {
    let (redis, origin) = (RedisServer::start(), Origin::start());
    let config = "limits: [{name: pace, key: header.x-key, rate: 1/hour, then: {ban: [1h, 24h, 240h]}}]\n";
    let gateways: Vec<_> = (0..2).map(|_| on(&redis, &origin, config)).collect();
    thread::scope(|scope| {
        for number in 0..20 {
            let gateway = &gateways[number % 2];
            scope.spawn(move || {
                let answer = gateway.get("/").header("X-Key", "alice").send();
                assert!(answer.status == 200 || wait(&answer) <= 3600, "{answer:?}");
            });
        }
    });
    assert_eq!(listed(&gateways[0]).as_array().map(Vec::len), Some(1));
}

#[test]
fn in_memory_bans_survive_a_restart_and_a_kill() {
    let origin = Origin::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let config = format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nstore: {{memory: {{snapshot: {}}}}}\n{BANS}",
        origin.url(),
        path.display()
    );
    let ask = |gateway: &Gateway, key: &str| gateway.get("/").header("X-Key", key).send();
    let mut first = Gateway::start(&config);
    assert_eq!((ask(&first, "alice").status, ask(&first, "alice").status), (200, 429));
    assert_eq!(post(&first, &json!({"address": "203.0.113.0/24", "for": "1h", "reason": "scans"})).0, 201);
    let before = listed(&first);
    first.signal("TERM");
    assert!(first.ended().success());

    let length = || std::fs::metadata(&path).map_or(0, |file| file.len());
    let at_first = length();
    let second = Gateway::start(&config);
    assert_eq!(listed(&second), before);
    assert!(wait(&ask(&second, "alice")) > 3500);
    assert_eq!((ask(&second, "bob").status, ask(&second, "bob").status), (200, 429));
    eventually("the second ban is written", || length() > at_first);
    drop(second);

    let third = Gateway::start(&config);
    assert!(wait(&ask(&third, "bob")) > 3500);
    drop(third);
    std::fs::write(&path, "nonsense").expect("it is written");
    let fourth = Gateway::start(&config);
    assert_eq!((ask(&fourth, "bob").status, listed(&fourth)), (200, json!([])));
    let said = fourth.log_messages();
    assert!(said.iter().any(|said| said.contains("the snapshot is damaged")), "{said:?}");
}
