//! Bodies that no operation of the admin API can use: a problem document, and nothing has changed.

use serde_json::json;

use crate::bad_input::{Site, good_query, is_problem};

#[test]
fn a_body_where_none_is_wanted_changes_nothing() {
    let site = Site::start();
    let before = site.state();
    for (method, path) in site.strict_operations() {
        if site.description.takes_a_body(&method, &path) {
            continue;
        }
        let target = format!("{}?{}", site.target(&path), good_query(&method, &path));
        let target = target.trim_end_matches('?');
        for body in ["[]", "{\"a\":1}", "hunter2", &"x".repeat(100_000)] {
            site.is_refused(&method, &path, &site.ask(&method, target).json(body), &[400]);
        }
        let chunked = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
            site.gateway.admin()
        );
        let mut client = site.ask(&method, target).connect();
        let response = client.send(chunked.as_bytes()).response_to(&method);
        assert_eq!(response.status, 400, "{method} {path}");
        is_problem(&response);
    }
    assert_eq!(site.state(), before);
    // A body that says nothing is none, as HTTP clients of several languages send it.
    for nothing in ["", "{}", "null"] {
        assert_eq!(site.ask("POST", "/api/v1/reload").json(nothing).status(), 200, "{nothing:?}");
    }
}

/// A good body of each operation that reads one, in the middle of which there is room for more fields.
fn good_body(method: &str, path: &str) -> &'static str {
    match (method, path) {
        ("POST", "/api/v1/bans") => r#"{"address": "203.0.113.9", "for": "1h"}"#,
        ("POST", "/session") => r#"{"token": "hunter2"}"#,
        _ => panic!("{method} {path} reads a body: write a good one here"),
    }
}

#[test]
fn a_body_that_is_no_object_of_the_known_fields_changes_nothing() {
    let site = Site::start();
    let before = site.state();
    for (method, path) in site.strict_operations() {
        if !site.description.takes_a_body(&method, &path) {
            continue;
        }
        let good = good_body(&method, &path);
        let ask = || site.ask(&method, &site.target(&path));
        let bodies = [
            String::new(),
            " ".to_owned(),
            "{".to_owned(),
            "{}".to_owned(),
            "[]".to_owned(),
            "null".to_owned(),
            "1".to_owned(),
            "\"hunter2\"".to_owned(),
            format!("[{good}]"),
            format!("{good}{good}"),
            good.replace('}', r#", "hunter2": 1}"#),
            good.replace('}', ","),
            good.replace(": \"", ": 1, \"hunter2\": \""),
            good.replace(": \"", ": [\"").replace("\"}", "\"]}"),
            good.replace('"', "'"),
            good.replace('{', "{\"a\": {").replace('}', "}}"),
            format!("\u{feff}{good}"),
            "[".repeat(10_000),
            "{\"a\":".repeat(2000),
        ];
        for body in &bodies {
            site.is_refused(&method, &path, &ask().json(body), &[400]);
        }
        for bytes in [&b"{\"\xff\": 1}"[..], b"\x00", b"\x1f\x8b\x08\x00"] {
            site.is_refused(&method, &path, &ask().body("application/json", bytes), &[400]);
        }
        // Bans of thousands of addresses are longer.
        let too_long = if path.contains("bans") { (1 << 20) + 1024 } else { 17 * 1024 };
        for length in [too_long, 3 << 20] {
            let long = good.replace('}', &format!(", \"reason\": \"{}\"}}", "x".repeat(length)));
            site.is_refused(&method, &path, &ask().json(&long), &[413]);
        }
        for media_type in ["text/plain", "application/xml", "multipart/form-data; boundary=x", "", "\u{e4}"] {
            site.is_refused(&method, &path, &ask().body(media_type, good), &[415]);
        }
        site.is_refused(&method, &path, &ask().json(good).header("Content-Type", "text/plain"), &[415]);
    }
    assert_eq!(site.state(), before);
}

#[test]
fn a_body_that_curl_calls_a_form_or_nothing_calls_anything_is_read_as_json() {
    let site = Site::start();
    for (method, path) in site.strict_operations() {
        if !site.description.takes_a_body(&method, &path) {
            continue;
        }
        let (target, good) = (site.target(&path), good_body(&method, &path));
        let called = |media_type: &str| site.ask(&method, &target).body(media_type, good).status();
        let accepted = called("application/json");
        assert_ne!(accepted, 415, "{method} {path}");
        for media_type in ["application/x-www-form-urlencoded", "application/json; charset=utf-8", "application/x+json"]
        {
            assert_eq!(called(media_type), accepted, "{method} {path} as {media_type}");
        }
        let length = good.len();
        let uncalled = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nContent-Length: {length}\r\n\r\n{good}",
            site.gateway.admin()
        );
        let mut client = site.ask(&method, &target).connect();
        assert_eq!(client.send(uncalled.as_bytes()).response_to(&method).status, accepted, "{method} {path} uncalled");
    }
}

#[test]
fn every_field_of_a_ban_is_checked() {
    let site = Site::start();
    let before = site.state();
    let long = "x".repeat(2000);
    let bodies = [
        json!(["198.51.100.9", null, null, "1h", "", false]).to_string(),
        json!({"address": 1, "for": "1h"}).to_string(),
        json!({"address": ["198.51.100.9"], "for": "1h"}).to_string(),
        json!({"address": "198.51.100.9", "for": 3600}).to_string(),
        json!({"address": "198.51.100.9", "for": "-1h"}).to_string(),
        json!({"address": "198.51.100.9", "for": "1e9h"}).to_string(),
        json!({"address": "198.51.100.9", "for": "99999999999999999999d"}).to_string(),
        json!({"address": "198.51.100.9", "for": long}).to_string(),
        json!({"address": "198.51.100.9", "for": "1h", "reason": null}).to_string(),
        json!({"address": "198.51.100.9", "for": "1h", "reason": "x".repeat(201)}).to_string(),
        json!({"address": "198.51.100.9", "for": "1h", "reason": "a\u{0}b"}).to_string(),
        json!({"address": "198.51.100.9", "for": "1h", "force": 1}).to_string(),
        json!({"address": long, "for": "1h"}).to_string(),
        json!({"address": "198.51.100.9/33", "for": "1h"}).to_string(),
        json!({"address": "198.51.100.9", "key": {}, "for": "1h"}).to_string(),
        json!({"limit": "pace", "key": [], "for": "1h"}).to_string(),
        json!({"limit": "pace", "key": "198.51.100.9", "for": "1h"}).to_string(),
        json!({"limit": "pace", "key": {"client_ip": 1}, "for": "1h"}).to_string(),
        json!({"limit": "pace", "key": {"client_ip": "198.51.100.0/24"}, "for": "1h"}).to_string(),
        json!({"limit": "pace", "key": {"client_ip": "198.51.100.9", "host": "x"}, "for": "1h"}).to_string(),
        json!({"limit": "guessing", "key": {"client_ip": "::1", "param.username": "x"}, "for": "1h"}).to_string(),
        r#"{"limit": "pace", "key": {"client_ip": "198.51.100.8", "client_ip": "198.51.100.9"}, "for": "1h"}"#
            .to_owned(),
        r#"{"address": "198.51.100.8", "address": "198.51.100.9", "for": "1h"}"#.to_owned(),
    ];
    for body in bodies {
        site.is_refused("POST", "/api/v1/bans", &site.ask("POST", "/api/v1/bans").json(&body), &[400]);
    }
    assert_eq!(site.state(), before);
}
