//! The audit trail: every event in every sink, and no key in clear.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{Gateway, Origin, RedisServer, eventually, key_without_digits, without_digits};

const LIMITS: &str = "\
routes:
  - name: login
    match: POST /login
    limits: [{name: guesses, key: [client_ip, param.username], rate: 1/hour}]
  - name: api
    match: /api
    limits: [{name: knocks, key: bearer, rate: 1/hour, then: {ban: 1h}}]
";

/// The events of these: one denial of alice, and one ban of a token with its denial.
fn misbehave(gateway: &Gateway) {
    for expected in [200, 429] {
        assert_eq!(gateway.post("/login").form("username=alice-the-great&password=hunter2").status(), expected);
    }
    for expected in [200, 429] {
        assert_eq!(gateway.get("/api").header("Authorization", "Bearer tok-geheim-3").status(), expected);
    }
}

fn lines(gateway: &Gateway, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(gateway.path(name)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("whole lines of JSON")).collect()
}

/// The access log line of the request to this path that was denied. Lines of different connections come in any order.
#[track_caller]
fn denied_line(gateway: &Gateway, path: &str) -> Value {
    let mut found = None;
    eventually("the denied request is logged", || {
        let lines = gateway.stdout();
        let mut lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        found = lines.find(|line| line["path"] == path && line["decision"] == "denied");
        found.is_some()
    });
    found.expect("just found")
}

#[track_caller]
fn holds_no_secret(text: &str) {
    for secret in ["alice-the", "hunter2", "geheim", "tok-"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[test]
fn a_file_has_a_line_for_each_denial_ban_and_reload_with_keys_masked() {
    let origin = Origin::start();
    let config = format!("upstream: {}\naudit: {{file: audit.jsonl}}\n{LIMITS}", origin.url());
    let gateway = Gateway::start(&config);
    misbehave(&gateway);
    eventually("three lines are written", || lines(&gateway, "audit.jsonl").len() == 3);
    let found = lines(&gateway, "audit.jsonl");
    let of = |event: &str, limit: &str| {
        let line = found.iter().find(|line| line["event"] == event && line["limit"] == limit);
        line.unwrap_or_else(|| panic!("no {event} by {limit} in {found:?}"))
    };
    let denial = of("denial", "guesses");
    assert_eq!(key_without_digits(&denial["key"]), json!({"client_ip": "127.0.*.*", "param.username": "a***"}));
    assert_eq!((&denial["client"], &denial["route"]), (&json!("127.0.0.1"), &json!("login")));
    assert_eq!(denial["request_id"], denied_line(&gateway, "/login")["request_id"]);
    assert!((3500.0..=3600.0).contains(&denial["for"].as_f64().expect("seconds")), "{denial}");
    let ban = of("ban", "knocks");
    assert_eq!((key_without_digits(&ban["key"]), ban["for"].as_f64()), (json!({"bearer": "***"}), Some(3600.0)));
    assert_eq!(ban["client"], "127.0.0.1", "who asked when it began");
    assert_eq!(of("denial", "knocks")["decision"], "banned");

    gateway.reload(format!("{config}    only: []\n").replace("    only: []\n", "  - {match: /new}\n"));
    eventually("the reload is a line", || lines(&gateway, "audit.jsonl").len() == 4);
    assert_eq!(lines(&gateway, "audit.jsonl")[3]["event"], "reload");
    holds_no_secret(&fs::read_to_string(gateway.path("audit.jsonl")).expect("the file"));
}

#[test]
fn a_file_that_is_rotated_away_is_begun_anew_and_whole_when_the_gateway_ends() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!(
        "upstream: {}\naudit: {{file: audit.jsonl}}\nlimits: [{{name: pace, key: client_ip, rate: 1/hour}}]",
        origin.url()
    ));
    assert_eq!(gateway.get("/").status(), 200);
    assert_eq!(gateway.get("/").status(), 429);
    eventually("a line is written", || lines(&gateway, "audit.jsonl").len() == 1);
    fs::rename(gateway.path("audit.jsonl"), gateway.path("audit.jsonl.1")).expect("a file to rotate");
    for _ in 0..20 {
        assert_eq!(gateway.get("/").status(), 429);
    }
    gateway.signal("TERM");
    assert!(gateway.ended().success());
    assert_eq!((lines(&gateway, "audit.jsonl.1").len(), lines(&gateway, "audit.jsonl").len()), (1, 20));
}

#[test]
fn a_place_that_cannot_be_written_ends_the_start_and_leaves_a_running_gateway_as_it_is() {
    let origin = Origin::start();
    let config = format!("upstream: {}\n", origin.url());
    let gateway = Gateway::start(&config);
    gateway.write_config(format!("{config}audit: {{file: absent/audit.jsonl}}\n"));
    eventually("the reload is refused", || gateway.failed_reloads() == 1);
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn a_stream_in_redis_has_an_entry_for_each_and_what_waited_while_redis_was_away() {
    let mut redis = RedisServer::start();
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nstore: {{redis: {{url: \"{}\", timeout: 10s}}}}\naudit: {{redis_stream: {{key: trail, max_entries: 1000}}}}\n{LIMITS}",
        origin.url(),
        redis.url()
    ));
    misbehave(&gateway);
    eventually("three entries are there", || redis.cli(&["XLEN", "trail"]).trim() == "3");
    let entries = redis.cli(&["XRANGE", "trail", "-", "+"]);
    for text in ["denial", "ban", "guesses", r#"{"client_ip":"127.0.*.*","param.username":"a***"}"#, "127.0.0.1"] {
        assert!(without_digits(&entries).contains(text), "{text} in {entries}");
    }
    holds_no_secret(&entries);

    redis.kill();
    for expected in [200, 429] {
        assert_eq!(gateway.post("/login").form("username=bob").status(), expected);
    }
    redis.restart();
    eventually("what waited is there", || redis.cli(&["XRANGE", "trail", "-", "+"]).contains("b***"));
}

#[test]
fn a_database_has_a_row_for_each() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!("upstream: {}\naudit: {{sqlite: audit.db}}\n{LIMITS}", origin.url()));
    misbehave(&gateway);
    for name in ["audit.db", "audit.db-wal", "audit.db-shm"] {
        let mode = fs::metadata(gateway.path(name)).expect("a file of the database").permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
    gateway.signal("TERM");
    assert!(gateway.ended().success());
    let database = rusqlite::Connection::open(gateway.path("audit.db")).expect("a database");
    let mut rows =
        database.prepare(r#"SELECT event, "limit", "key" FROM audit ORDER BY event, "limit""#).expect("a table");
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("rows");
    let rows: Vec<(String, String, String)> = rows
        .map(|row| row.expect("texts"))
        .map(|(event, limit, key): (String, String, String)| (event, limit, without_digits(&key)))
        .collect();
    let of = |event: &str, limit: &str, key: &str| (event.to_owned(), limit.to_owned(), key.to_owned());
    let guesses = r#"{"client_ip":"127.0.*.*","param.username":"a***"}"#;
    let knocks = r#"{"bearer":"***"}"#;
    assert_eq!(rows, [of("ban", "knocks", knocks), of("denial", "guesses", guesses), of("denial", "knocks", knocks)]);
}
