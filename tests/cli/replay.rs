//! `portcullis replay`.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::Folder;

pub(crate) const CONFIG: &str = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
routes:
  - name: login
    match: POST /login
    outcome: {failure: {status: 401}}
    limits:
      - {name: pace, key: client_ip, rate: 3/minute}
      - {name: guessing, key: client_ip, rate: 5/hour, count: failures, then: {ban: 10m}}
      - {name: accounts, key: param.username, rate: 5/hour}
";

/// A line of the combined format: `12:00:00` on one day, a client, a request, a status.
pub(crate) fn line(time: &str, client: &str, request: &str, status: u16) -> String {
    format!("{client} - - [21/Nov/2026:{time} +0000] \"{request} HTTP/1.1\" {status} 612 \"-\" \"curl/8\"\n")
}

pub(crate) fn login(time: &str, client: &str, status: u16) -> String {
    line(time, client, "POST /login", status)
}

/// Six guesses of one client within a minute, and two of another one.
pub(crate) fn guesses() -> String {
    let mut log = String::new();
    for second in 10..16 {
        log += &login(&format!("12:00:{second}"), "198.51.100.7", 401);
    }
    log += &login("12:00:20", "203.0.113.9", 401);
    log += &login("12:30:00", "203.0.113.9", 302);
    log += &line("12:31:00", "203.0.113.9", "GET /", 200);
    log
}

pub(crate) fn report(folder: &Folder, arguments: &[&str]) -> Value {
    let ended = folder.run(&[&["replay", "--format", "json"], arguments].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()
}

#[track_caller]
fn limit<'r>(report: &'r Value, name: &str) -> &'r Value {
    let limits = report["limits"].as_array().expect("limits");
    limits.iter().find(|limit| limit["name"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[test]
fn each_limit_says_how_many_it_denied_and_whom_and_when() {
    let folder = Folder::with(CONFIG);
    folder.write("access.log", &guesses());
    let report = report(&folder, &["access.log"]);
    assert_eq!(report["formats"], json!(["combined"]));
    assert_eq!(report["requests"], 9);
    assert_eq!(report["from"], "2026-11-21T12:00:10.000Z");
    assert_eq!(report["to"], "2026-11-21T12:31:00.000Z");
    assert_eq!(report["decisions"], json!({"allowed": 6, "denied": 3}));
    let pace = limit(&report, "pace");
    assert_eq!((&pace["met"], &pace["decisions"]), (&json!(8), &json!({"denied": 3})));
    assert_eq!(pace["top"], json!([{"client": "198.51.100.7", "count": 3}]));
    assert_eq!(pace["first"], "2026-11-21T12:00:13.000Z");
    assert_eq!(pace["worst_minute"], json!({"from": "2026-11-21T12:00:00.000Z", "count": 3}));
    let routes = report["routes"].as_array().expect("routes");
    assert_eq!(routes[0], json!({"name": "login", "requests": 8, "decisions": {"allowed": 5, "denied": 3}}));
    assert_eq!(routes[1]["name"], "-");
}

#[test]
fn people_read_the_same_in_words() {
    let folder = Folder::with(CONFIG);
    folder.write("access.log", &guesses());
    let said = folder.run(&["replay", "access.log"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    for expected in [
        "9 requests in one file (combined), 2026-11-21T12:00:10 to 2026-11-21T12:31:00 UTC",
        "pace: 3 denied of 8 requests",
        "198.51.100.7 (3)",
        "worst minute 2026-11-21T12:00 (3)",
        "guessing: lets all of 8 requests pass",
        "login: 8 requests: 5 allowed, 3 denied",
        "accounts: not replayed: the log does not hold param.username",
    ] {
        assert!(said.stdout.contains(expected), "no `{expected}` in\n{}", said.stdout);
    }
}

#[test]
fn failures_are_told_by_the_status_and_ban_for_as_long_as_they_would() {
    let folder = Folder::with(CONFIG);
    let mut log = String::new();
    // One failure every 30 s: the sixth within an hour is banned for ten minutes.
    for number in 0..40 {
        log += &login(&format!("12:{:02}:{:02}", number / 2, number % 2 * 30), "198.51.100.7", 401);
        log += &login(&format!("12:{:02}:{:02}", number / 2, number % 2 * 30 + 1), "203.0.113.9", 302);
    }
    folder.write("access.log", &log);
    let report = report(&folder, &["access.log"]);
    let guessing = limit(&report, "guessing");
    // From 12:02:30 on: twenty within the ban, then the limit is still full and the ban begins again.
    assert_eq!(guessing["decisions"], json!({"banned": 35}));
    assert_eq!(guessing["first"], "2026-11-21T12:02:30.000Z");
    assert_eq!(guessing["top"], json!([{"client": "198.51.100.7", "count": 35}]));
}

#[test]
fn requests_are_decided_when_they_began_though_lines_are_written_when_they_end() {
    let config = "listen: 127.0.0.1:8080\nupstream: http://127.0.0.1:8000\nlimits:\n  \
                  - {name: slots, key: client_ip, concurrent: 1}\n";
    let folder = Folder::with(config);
    let line = |start: &str, took: u32| {
        format!(
            "198.51.100.7:33317 [06/Feb/2009:{start}] fe be/s 0/0/0/1/{took} 200 1 - - ---- 1/1/1/1/0 0/0 \"GET /{took} HTTP/1.1\"\n"
        )
    };
    // The second line began first, and lasted until after the first one had ended.
    folder.write("haproxy.log", &(line("12:00:01.000", 500) + &line("12:00:00.000", 3000) + &line("12:00:04.000", 1)));
    let report = report(&folder, &["haproxy.log"]);
    assert_eq!(report["decisions"], json!({"allowed": 2, "denied": 1}));
    assert_eq!(limit(&report, "slots")["first"], "2009-02-06T12:00:01.000Z");
    assert_eq!(report["late"], 0);
}

#[test]
fn what_a_log_does_not_hold_is_said_and_not_guessed() {
    let config = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
lists: {keys: {of: header.x-api-key, file: keys.txt}, office: {addresses: [198.51.100.0/24]}}
access: {allow: [keys]}
limits:
  - {name: agents, key: header.user-agent, rate: 2/minute, unless: [office]}
  - {name: tokens, key: bearer, rate: 2/minute}
  - {name: slots, key: client_ip, concurrent: 1}
routes:
  - {name: api, match: {host: api.example.com, path: /v1/*}, limits: [{name: by-host, key: client_ip, rate: 1/minute}]}
  - {name: shop, match: {domain: store}, limits: [{name: by-user, key: descriptor.user, rate: 1/minute}]}
  - name: login
    match: POST /login
    outcome: {success: {status: 302, header: {location: \"/account*\"}}}
    known_clients: {of: param.username}
    limits:
      - {name: failed, key: client_ip, rate: 1/minute, count: failures}
      - {name: strangers, key: client_ip, rate: 9/minute, unless: [known_client]}
      - {name: queries, key: query.user, rate: 2/minute}
";
    let folder = Folder::with(config);
    folder.write("keys.txt", "abc\n");
    let mut log = String::new();
    for second in 0..5 {
        log += &line(&format!("12:00:0{second}"), "203.0.113.9", "POST /login?user=a", 200);
    }
    folder.write("access.log", &log);
    let report = report(&folder, &["access.log"]);
    let left_out: Vec<(&str, &str, Vec<&str>)> = report["left_out"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            let lacks = one["lacks"].as_array().expect("a list").iter().map(|lack| lack.as_str().expect("text"));
            (one["kind"].as_str().expect("text"), one["name"].as_str().expect("text"), lacks.collect())
        })
        .collect();
    for expected in [
        ("list", "keys", vec!["header.x-api-key"]),
        ("route", "api", vec!["host"]),
        ("limit", "by-host", vec!["host"]),
        ("route", "shop", vec!["descriptors of the domain store"]),
        ("limit", "by-user", vec!["descriptors of the domain store"]),
        ("limit", "tokens", vec!["bearer"]),
        ("limit", "slots", vec!["how long a request took"]),
        ("limit", "failed", vec!["the header location of the answer"]),
        ("known_clients", "login", vec!["the header location of the answer"]),
    ] {
        assert!(left_out.contains(&expected), "no {expected:?} in {left_out:?}");
    }
    assert_eq!(left_out.len(), 9, "{left_out:?}");
    let names: Vec<_> = report["limits"].as_array().expect("limits").iter().map(|limit| &limit["name"]).collect();
    assert_eq!(names, ["agents", "strangers", "queries"]);
    assert_eq!(limit(&report, "strangers")["met"], 5);
    assert_eq!(limit(&report, "queries")["count"], 3);
}

#[test]
fn a_client_that_logged_in_is_known_though_the_log_does_not_hold_the_name() {
    let config = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
routes:
  - name: login
    match: POST /login
    outcome: {success: {status: 302}}
    known_clients: {of: [host, param.username], by: cookie}
    limits: [{name: strangers, key: [], rate: 2/hour, count: failures, unless: [known_client]}]
";
    let folder = Folder::with(config);
    // Eight clients log in, more than are remembered for one name. Then they, and two strangers, mistype.
    let mut log = String::new();
    for client in 1..=8 {
        log += &login(&format!("12:00:0{client}"), &format!("198.51.100.{client}"), 302);
    }
    for client in 1..=8 {
        log += &login(&format!("12:01:0{client}"), &format!("198.51.100.{client}"), 200);
    }
    for second in 0..4 {
        log += &login(&format!("12:02:0{second}"), "203.0.113.9", 200);
    }
    folder.write("access.log", &log);
    let replayed = report(&folder, &["access.log"]);
    let strangers = limit(&replayed, "strangers");
    assert_eq!((&strangers["met"], &strangers["count"]), (&json!(12), &json!(2)), "{replayed}");
    assert_eq!(strangers["top"], json!([{"client": "203.0.113.9", "count": 2}]));
    let names = json!([{"kind": "known_names", "name": "login", "lacks": ["host", "param.username"]}]);
    assert_eq!(replayed["left_out"], names);
    let said = folder.run(&["replay", "access.log"]).stdout;
    let expected = "route login: a client counts as known under any name: the log does not hold host, param.username";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn headers_and_answers_count_where_the_log_holds_them() {
    let config = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
routes:
  - name: login
    match: {methods: [POST], host: example.com, path: /login}
    outcome: {success: {status: 302, header: {location: \"/account*\"}}}
    limits:
      - {name: failed, key: header.x-device, rate: 2/hour, count: failures, reset_on: success}
";
    let folder = Folder::with(config);
    let mut log = String::new();
    let mut second = 0;
    let mut add = |location: &str| {
        second += 1;
        writeln!(
            log,
            r#"{{"level":"info","ts":{}.5,"logger":"http.log.access","request":{{"remote_ip":"198.51.100.7","method":"POST","host":"example.com","uri":"/login","headers":{{"X-Device":["d1"]}}}},"duration":0.01,"status":302,"resp_headers":{{"Location":["{location}"]}}}}"#,
            1_700_000_000 + second
        )
        .expect("writing to a string does not fail");
    };
    // A failure, a success that resets, then three failures, of which the last is denied.
    ["/login", "/account", "/login", "/login", "/login"].into_iter().for_each(&mut add);
    folder.write("caddy.log", &log);
    let report = report(&folder, &["caddy.log"]);
    assert_eq!(report["left_out"], json!([]));
    assert_eq!(limit(&report, "failed")["count"], 1);
    assert_eq!(limit(&report, "failed")["first"], "2023-11-14T22:13:25.490Z");
}

#[test]
fn our_own_log_has_outcomes_that_no_status_tells() {
    let config = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
routes:
  - name: login
    match: POST /login
    outcome: {failure: {body: wrong password}}
    limits: [{name: failed, key: client_ip, rate: 3/hour, count: failures}]
";
    let folder = Folder::with(config);
    let line = |second: u32, decision: &str, outcome: &str| {
        format!(
            "{{\"time\":\"2026-11-21T12:00:{second:02}.000Z\",\"client\":\"198.51.100.7\",\"method\":\"POST\",\"host\":\"a\",\"path\":\"/login\",\
             \"decision\":\"{decision}\",\"status\":200,{outcome}\"upstream\":\"app\",\"duration_ms\":1.0}}\n"
        )
    };
    let (failure, success) = ("\"outcome\":\"failure\",", "\"outcome\":\"success\",");
    // Two failures, a request that was denied then, and so three slots are taken; the last failure is one too many.
    let log = [("allowed", failure), ("allowed", success), ("allowed", failure), ("denied", ""), ("allowed", failure)];
    let log: String = (0..).zip(log).map(|(second, (decision, outcome))| line(second, decision, outcome)).collect();
    folder.write("own.log", &log);
    let report = report(&folder, &["own.log"]);
    assert_eq!((&report["left_out"], &report["unknown_outcomes"]), (&json!([]), &json!(1)));
    assert_eq!(limit(&report, "failed")["first"], "2026-11-21T12:00:03.999Z");
    assert_eq!(limit(&report, "failed")["count"], 1);
}

#[test]
fn a_key_that_no_log_holds_is_told_by_the_hashes_of_our_own() {
    let config = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
routes:
  - name: login
    match: POST /login
    outcome: {failure: {status: 401}}
    known_clients: {of: [host, param.username]}
    limits:
      - {name: account, key: param.username, rate: 2/hour, count: failures, unless: [known_client]}
      - {name: address, key: [client_ip, param.username], rate: 9/hour}
      - {name: spray, key: client_ip, distinct: param.username, rate: 1/hour}
      - {name: other, key: param.email, rate: 9/hour}
";
    let folder = Folder::with(config);
    let own = |second: u32, client: &str, name: u8, status: u16| {
        let keys = format!("{name:032x} account\\n{:032x} address", u32::from(name) + 100);
        let keys = if name == 0 { String::new() } else { format!("\"keys\":\"{keys}\",") };
        format!(
            "{{\"time\":\"2026-11-21T12:00:{second:02}.000Z\",\"client\":\"{client}\",\"protocol\":\"http/1.1\",\"method\":\"POST\",\
             \"host\":\"a\",\"path\":\"/login\",\"decision\":\"allowed\",{keys}\"status\":{status},\"upstream\":\"app\",\"duration_ms\":1.0}}\n"
        )
    };
    // Three guesses at one name from three addresses; one address with two names; one that is known by then.
    let log = [
        own(1, "198.51.100.1", 1, 401),
        own(2, "198.51.100.2", 1, 401),
        own(3, "198.51.100.3", 1, 401),
        own(4, "198.51.100.4", 2, 200),
        own(5, "198.51.100.4", 3, 200),
        own(6, "198.51.100.5", 0, 200),
    ];
    folder.write("own.log", &log.concat());
    let report = report(&folder, &["own.log"]);
    let left_out = report["left_out"].as_array().expect("a list");
    assert_eq!(left_out.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["other"], "{report}");
    assert_eq!((&limit(&report, "account")["count"], &limit(&report, "spray")["count"]), (&json!(1), &json!(1)));
    assert_eq!(limit(&report, "account")["first"], "2026-11-21T12:00:02.999Z", "{report}");
    assert_eq!(limit(&report, "address")["met"], 5, "{report}");
}

#[test]
fn delays_and_shadow_limits_are_told_apart_from_denials() {
    let config = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
limits:
  - {name: slow, key: client_ip, rate: 2/minute, then: {delay: 5s}}
  - {name: trial, key: client_ip, rate: 1/minute, shadow: true}
";
    let folder = Folder::with(config);
    let log: String = (0..4).map(|second| line(&format!("12:00:0{second}"), "198.51.100.7", "GET /", 200)).collect();
    folder.write("access.log", &log);
    let report = report(&folder, &["access.log"]);
    assert_eq!(report["decisions"], json!({"allowed": 2, "delayed": 2}));
    assert_eq!(limit(&report, "slow")["decisions"], json!({"delayed": 2}));
    assert_eq!(limit(&report, "trial")["shadow_denied"], 3);
    assert_eq!(report["denied"]["count"], 0);
}

#[test]
fn against_an_older_configuration_it_shows_who_is_treated_differently() {
    let folder = Folder::with(CONFIG);
    folder.write("old.yaml", &CONFIG.replace("rate: 3/minute", "rate: 5/minute"));
    folder.write("access.log", &guesses());
    let stricter = report(&folder, &["--against", "old.yaml", "access.log"]);
    let differences = stricter["against"]["differences"].as_array().expect("differences");
    let told = |one: &Value| json!([one["limit"], one["before"], one["now"], one["count"], one["top"][0]["client"]]);
    assert_eq!(
        differences.iter().map(told).collect::<Vec<_>>(),
        [
            json!(["pace", "allowed", "denied", 2, "198.51.100.7"]),
            json!(["pace", "banned", "denied", 1, "198.51.100.7"])
        ]
    );
    let milder = report(&folder, &["-c", "old.yaml", "--against", "portcullis.yaml", "access.log"]);
    assert_eq!(told(&milder["against"]["differences"][0]), json!(["pace", "denied", "allowed", 2, "198.51.100.7"]));
    let same = report(&folder, &["--against", "portcullis.yaml", "access.log"]);
    assert_eq!(same["against"]["differences"], json!([]));
    let said = folder.run(&["replay", "--against", "old.yaml", "access.log"]).stdout;
    assert!(said.contains("pace: 2 denied that were allowed"), "{said}");
}

#[test]
fn a_log_of_the_proxy_in_front_is_noticed() {
    let folder = Folder::with(&format!("client_ip: {{trusted_proxies: [10.0.0.0/8]}}\n{CONFIG}"));
    folder.write("access.log", &login("12:00:00", "10.0.0.5", 200));
    let said = folder.run(&["replay", "access.log"]).stdout;
    assert!(said.contains("1 request from addresses in trusted_proxies"), "{said}");
}

#[test]
fn a_query_that_was_not_sent_is_an_empty_value_where_the_log_would_hold_it() {
    let config = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
limits:
  - {name: users, key: query.user, rate: 2/minute}
  - {name: some, key: query.user, rate: 1/minute, missing: skip}
";
    let folder = Folder::with(config);
    let mut log: String = (0..5).map(|second| line(&format!("12:00:0{second}"), "203.0.113.9", "GET /", 200)).collect();
    // A few lines decide about headers and the like, and none of them has a query.
    folder.write("access.log", &log);
    let without = report(&folder, &["access.log"]);
    assert_eq!((&without["left_out"], &without["decisions"]), (&json!([]), &json!({"allowed": 2, "denied": 3})));
    log = log.repeat(300) + &line("12:20:00", "203.0.113.9", "GET /?user=a", 200).repeat(3);
    folder.write("access.log", &log);
    assert_eq!(limit(&report(&folder, &["access.log"]), "some")["count"], 2);
    let own = |query: &str| {
        format!(
            "{{\"time\":\"2026-11-21T12:00:00.000Z\",\"client\":\"198.51.100.7\",\"protocol\":\"http/1.1\",\"method\":\"GET\",\
             \"host\":\"a\",\"path\":\"/\",{query}\"decision\":\"allowed\",\"status\":200,\"upstream\":\"app\",\"duration_ms\":1.0}}\n"
        )
    };
    folder.write("own.log", &own("").repeat(5));
    let lacks = report(&folder, &["own.log"])["left_out"].to_string();
    assert!(lacks.contains("query.user"), "{lacks}");
    folder.write("own.log", &(own("\"query\":\"user=a\",") + &own("").repeat(3)));
    assert_eq!(report(&folder, &["own.log"])["decisions"], json!({"allowed": 3, "denied": 1}));
}
