//! The outcome of an answer: by status, header, cookie, body and JSON, compressed or not.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::support::{Answer, Gateway, Origin, Request, eventually};

fn gateway(origin: &Origin, outcome: &str) -> Gateway {
    Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nserver: {{inspect_body: 4KiB}}\nupstream: {}\nroutes:\n  - name: login\n    match: /login\n    \
         outcome: {{{outcome}}}\n    limits:\n      - {{name: failures, key: query.user, count: failures, rate: 1/hour}}\n",
        origin.url()
    ))
}

/// Whether an answer left its mark: where it is no success, the second request of that user is denied.
#[track_caller]
fn check(gateway: &Gateway, user: &str, expected: &str) {
    let before = outcomes(gateway).len();
    let target = format!("/login?user={user}");
    assert_ne!(gateway.get(&target).status(), 429);
    eventually("the outcome is logged", || outcomes(gateway).len() == before + 1);
    assert_eq!(outcomes(gateway)[before], expected, "{user}");
    let is_denied = gateway.get(&target).status() == 429;
    assert_eq!(is_denied, matches!(expected, "failure" | "unknown"), "{user}");
    eventually("the second one is logged", || outcomes(gateway).len() == before + if is_denied { 1 } else { 2 });
}

/// What the log says of logins, in the order they ended.
pub(crate) fn outcomes(gateway: &Gateway) -> Vec<String> {
    let lines = gateway.stdout();
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter_map(|line| Some(line["outcome"].as_str()?.to_owned())).collect()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).expect("writing to a vector does not fail");
    encoder.finish().expect("writing to a vector does not fail")
}

fn zstd(body: &[u8]) -> Vec<u8> {
    compress_to_vec(body, CompressionLevel::Fastest)
}

/// Brotli that compresses nothing: one block of at most 64 KiB, and the end.
fn brotli(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() - 1).expect("a short body");
    let head = (length << 4) | (1 << 20);
    [&head.to_le_bytes()[..3], body, &[3]].concat()
}

fn wrapped(coding: &str, body: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => gzip(body),
        "br" => brotli(body),
        "zstd" => zstd(body),
        _ => body.to_vec(),
    }
}

#[test]
fn a_mark_is_found_in_every_encoding_and_however_the_page_is_cut_into_frames() {
    let origin = Origin::scripted(|mut exchange| {
        while let Some(received) = exchange.request() {
            let (coding, mark) =
                received.target.rsplit_once("user=").and_then(|(_, user)| user.split_once('-')).expect("a target");
            let page = format!("<html>{}<p>{}</p></html>", "lorem ipsum ".repeat(50), mark.replace('+', " "));
            let body = wrapped(coding, page.as_bytes());
            let named = if coding == "plain" { String::new() } else { format!("Content-Encoding: {coding}\r\n") };
            exchange.write(format!("HTTP/1.1 200 OK\r\n{named}Transfer-Encoding: chunked\r\n\r\n"));
            for (number, piece) in body.chunks(7).enumerate() {
                exchange.write([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
                if number % 16 == 0 {
                    exchange.pause(Duration::from_millis(1));
                }
            }
            exchange.write("0\r\n\r\n");
        }
    });
    let gateway = gateway(&origin, "failure: {status: 200, body: invalid password}");
    for coding in ["plain", "gzip", "br", "zstd"] {
        check(&gateway, &format!("{coding}-invalid+password"), "failure");
        check(&gateway, &format!("{coding}-welcome"), "success");
    }
    check(&gateway, "compress-welcome", "unknown");
}

#[test]
fn a_bomb_is_read_to_the_bound_and_passed_on_as_it_is() {
    let bomb = gzip(&vec![b'x'; 10 << 20]);
    let length = bomb.len();
    let origin = Origin::answering(move |_| Answer::new(200, &[("Content-Encoding", "gzip")], &bomb));
    let gateway = gateway(&origin, "failure: {body: invalid}");
    assert_eq!(gateway.get("/login?user=a").send().body.len(), length);
    eventually("its outcome is logged", || outcomes(&gateway).len() == 1);
    check(&gateway, "b", "unknown");
}

#[test]
fn a_success_mark_that_a_failed_page_repeats_is_no_success() {
    let origin = Origin::answering(|received| {
        let (_, user) = received.target.rsplit_once("user=").unwrap_or_default();
        match user.strip_suffix("-right") {
            Some(user) => Answer::ok(format!("<p>Welcome, {user}")),
            None => Answer::ok(format!("<p>{user}: wrong password")),
        }
    });
    let gateway = gateway(&origin, "success: {body: Welcome}, failure: {body: wrong password}");
    check(&gateway, "alice-right", "success");
    check(&gateway, "alice", "failure");
    check(&gateway, "Welcome", "failure");
    // Nor does a name so long that the other mark is out of sight.
    check(&gateway, &format!("Welcome{}", "x".repeat(5000)), "unknown");
}

#[test]
fn a_mark_beyond_what_is_looked_at_is_never_taken_for_its_absence_to_the_clients_gain() {
    let origin = Origin::answering(|received| {
        let (_, user) = received.target.rsplit_once("user=").unwrap_or_default();
        let (kind, name) = user.split_once('-').unwrap_or_default();
        let mark = if name == "right" { "welcome" } else { "invalid" };
        match kind {
            // The last letter of the mark is the last, and the first behind the last, that is looked at.
            "last" => Answer::ok(format!("{}{mark}", "x".repeat(4096 - 7))),
            "behind" => Answer::ok(format!("{}{mark}", "x".repeat(4096 - 6))),
            _ => Answer::ok(format!("{}{mark}", "x".repeat(100_000))),
        }
    });
    let by_failure = gateway(&origin, "failure: {body: invalid}");
    check(&by_failure, "last-wrong", "failure");
    check(&by_failure, "last-right", "success");
    for user in ["behind-wrong", "behind-right", "far-wrong", "far-right"] {
        check(&by_failure, user, "unknown");
    }
    let by_success = gateway(&origin, "success: {body: welcome}");
    check(&by_success, "last-right", "success");
    for user in ["last-wrong", "behind-right", "far-right", "far-wrong"] {
        check(&by_success, user, "failure");
    }
}

#[test]
fn json_headers_and_cookies_say_what_they_mean() {
    let origin = Origin::answering(|received| {
        let (_, user) = received.target.rsplit_once("user=").unwrap_or_default();
        match user {
            "ok" => Answer::new(200, &[("Content-Type", "application/json")], r#"{"result": {"ok": true}}"#),
            "echo" => Answer::ok(r#"{"result": {"ok": false, "name": "\"ok\": true"}}"#),
            "empty" => Answer::ok("{}"),
            _ => Answer::new(500, &[], "<h1>sorry</h1>"),
        }
    });
    let json = gateway(&origin, "success: {json: {result.ok: true}}, failure: {json: {result.ok: false}}");
    check(&json, "ok", "success");
    check(&json, "echo", "failure");
    check(&json, "empty", "neither");
    check(&json, "broken", "neither");
    let origin = Origin::answering(|received| {
        let session = ("Set-Cookie", "session=1; Path=/");
        match received.target.rsplit_once("user=").unwrap_or_default().1 {
            "alice" => Answer::new(302, &[("Location", "/account/7"), ("Set-Cookie", "a=b"), session], ""),
            "bob" => Answer::new(302, &[("Location", "/login"), session], ""),
            "carol" => Answer::new(302, &[("Location", "/account/7"), ("Set-Cookie", "session=; Max-Age=0")], ""),
            _ => Answer::new(200, &[("Location", "/account/7"), session], ""),
        }
    });
    let head = gateway(&origin, "success: {status: 302, header: {location: \"/account*\"}, cookie: session}");
    check(&head, "alice", "success");
    for user in ["bob", "carol", "dave"] {
        check(&head, user, "failure");
    }
}

#[test]
fn conditions_and_ranges_do_not_reach_the_application_and_encodings_only_that_can_be_read() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "failure: {body: invalid}");
    let tricky = |target: &str| -> Request {
        gateway
            .get(target)
            .header("Range", "bytes=0-1")
            .header("If-Range", "\"a\"")
            .header("If-None-Match", "*")
            .header("If-Match", "\"a\"")
            .header("If_Modified_Since", "x")
            .header("If-Modified-Since", "Sat, 29 Oct 2044 19:43:31 GMT")
            .header("If-Unmodified-Since", "Sat, 29 Oct 1994 19:43:31 GMT")
            .header("Accept-Encoding", "dcb, gzip;q=0.5, br, *")
            .header("Accept-Encoding", "zstd")
    };
    assert_eq!(tricky("/login").status(), 200);
    let names = origin.last().headers.names();
    assert!(!names.iter().any(|name| name.starts_with("if") || name == "range"), "{names:?}");
    assert_eq!(origin.last().header("accept-encoding"), Some("gzip;q=0.5, br, zstd"));
    assert_eq!(gateway.get("/login?user=a").header("Accept-Encoding", "dcb").status(), 200);
    assert_eq!(origin.last().header("accept-encoding"), Some("identity"));
    assert_eq!(tricky("/other").status(), 200);
    assert_eq!(origin.last().header("range"), Some("bytes=0-1"));
    assert_eq!(origin.last().headers.all("accept-encoding").len(), 2);
}

#[test]
fn an_answer_without_the_page_it_stands_for_says_nothing_of_it() {
    let origin = Origin::scripted(|mut exchange| {
        while let Some(received) = exchange.request() {
            let head = match (received.method.as_str(), received.target.as_str()) {
                ("HEAD", _) => "200 OK\r\nContent-Length: 7",
                (_, "/login?user=part") => {
                    "206 Partial\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nok\r\n"
                }
                _ => "304 Not Modified",
            };
            let end = if head.contains("\r\n\r\n") { "" } else { "\r\n\r\n" };
            exchange.write(format!("HTTP/1.1 {}{end}", head.trim_end()));
        }
    });
    let gateway = gateway(&origin, "failure: {body: invalid}");
    check(&gateway, "part", "unknown");
    check(&gateway, "unmodified", "unknown");
    assert_eq!(gateway.request("HEAD", "/login?user=head").status(), 200);
    assert_eq!(gateway.request("HEAD", "/login?user=head").status(), 429);
}

#[test]
fn a_page_goes_on_while_it_is_looked_at() {
    let origin = Origin::scripted(|mut exchange| {
        while exchange.request().is_some() {
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nfirst");
            // The rest comes when the client has the first part.
            exchange.head();
        }
    });
    let gateway = gateway(&origin, "failure: {body: invalid}");
    let mut client = gateway.connect();
    client.send(gateway.get("/login").bytes());
    client.head();
    assert_eq!(client.some(), b"first");
    origin.hang_up();
    assert!(client.rest().is_empty());
}

#[test]
fn outcomes_are_counted() {
    let origin = Origin::answering(|received| {
        Answer::new(if received.target.contains("good") { 302 } else { 200 }, &[], "page")
    });
    let gateway = gateway(&origin, "success: {status: 302}");
    check(&gateway, "good", "success");
    check(&gateway, "bad", "failure");
    let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    for line in [
        "portcullis_outcomes_total{route=\"login\",outcome=\"success\"} 2",
        "portcullis_outcomes_total{route=\"login\",outcome=\"failure\"} 1",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
}

#[test]
fn a_cookie_of_a_success_is_named_by_a_glob() {
    let origin = Origin::answering(|received| {
        let marks: &[&str] = match received.target.rsplit('=').next() {
            Some("right") => &["wordpress_test_cookie=WP", "wordpress_logged_in_0f3a=alice; HttpOnly"],
            Some("out") => {
                &["wordpress_test_cookie=WP", "wordpress_logged_in_0f3a=+; Expires=Sun, 05 Jan 2025 00:00:00 GMT"]
            }
            _ => &["wordpress_test_cookie=WP"],
        };
        let lines: Vec<_> = marks.iter().map(|mark| ("Set-Cookie", *mark)).collect();
        Answer::new(200, &lines, "page")
    });
    let gateway = gateway(&origin, "success: {cookie: wordpress_logged_in_*}");
    check(&gateway, "right", "success");
    check(&gateway, "wrong", "failure");
    check(&gateway, "out", "failure");
}
