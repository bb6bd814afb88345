//! Bans that other gateways, and the next process, know.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::bans::{api, listed, post, wait};
use crate::support::{Gateway, Origin, RedisServer, Stopwatch, eventually};

fn on(redis: &RedisServer, origin: &Origin, rest: &str) -> Gateway {
    let store = format!("store: {{redis: {{url: \"{}\", timeout: 10s}}}}", redis.url());
    Gateway::start(format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{store}\n{rest}", origin.url()))
}

const BANS: &str = "limits: [{name: pace, key: header.x-key, rate: 1/hour, then: {ban: [1h, 24h]}}]\n";

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
    // A ban is on disk at once, not with the changes of each second.
    let begun = Stopwatch::start();
    for number in 1..=6 {
        let before = length();
        let ban = json!({"address": format!("192.0.2.{number}"), "for": "1h", "reason": "scans"});
        assert_eq!(post(&third, &ban).0, 201);
        eventually("it is written", || length() > before);
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    // Another gateway with the same file would overwrite it.
    let other = Gateway::start(&config);
    let told = || other.admin_request("GET", "/api/v1/status").send().json()["verdict"]["sentence"].to_string();
    eventually("it says so", || told().contains(": another gateway writes it, and each would overwrite"));
    drop(third);
    eventually("it writes the file now", || told().contains("All is well."));
    drop(other);
    std::fs::write(&path, "nonsense").expect("it is written");
    let fourth = Gateway::start(&config);
    assert_eq!((ask(&fourth, "bob").status, listed(&fourth)), (200, json!([])));
    let said = fourth.log_messages();
    assert!(said.iter().any(|said| said.contains("the snapshot is damaged")), "{said:?}");
}

#[test]
fn in_memory_a_banned_client_is_shown_and_exported_after_a_restart() {
    let origin = Origin::start();
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nstore: {{memory: {{snapshot: {}}}}}\nclient_ip: {{trusted_proxies: \
         [127.0.0.1]}}\nlimits: [{{name: pace, key: client_ip, rate: 1/hour, then: {{ban: 1h}}}}]\n",
        origin.url(),
        folder.path().join("state").display()
    );
    let exported = |gateway: &Gateway| api(gateway, "GET", "/export").send().text();
    let mut first = Gateway::start(&config);
    for client in ["198.51.100.7", "2001:db8:1:2::9"] {
        let ask = || first.get("/").header("X-Forwarded-For", client).status();
        assert_eq!([ask(), ask()], [200, 429]);
    }
    let before = listed(&first);
    assert_eq!(exported(&first), "198.51.100.7\n2001:db8:1:2::/64\n");
    first.signal("TERM");
    assert!(first.ended().success());
    let second = Gateway::start(&config);
    assert_eq!(listed(&second), before);
    assert_eq!(exported(&second), "198.51.100.7\n2001:db8:1:2::/64\n");
    assert_eq!(api(&second, "DELETE", "?address=198.51.100.7").status(), 200);
    assert_eq!(exported(&second), "2001:db8:1:2::/64\n");
}
