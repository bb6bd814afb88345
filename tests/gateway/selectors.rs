//! Every selector: two requests that share a budget, and two that do not.

use std::fmt::Write;

use self::Budget::{Apart, Shared};
use crate::support::{Gateway, Origin, Request};

const MULTIPART: &str = "multipart/form-data; boundary=cut";

type Asks = fn(&Gateway) -> Request;

/// Two requests. The second is denied exactly when both have one key.
struct Pair {
    key: &'static str,
    first: Asks,
    second: Asks,
    budget: Budget,
}

/// Whether two requests share one budget.
#[derive(Clone, Copy)]
enum Budget {
    Shared,
    Apart,
}

fn pair(key: &'static str, first: Asks, second: Asks, budget: Budget) -> Pair {
    Pair { key, first, second, budget }
}

/// Sends each pair to routes of its own, where each key passes once.
#[track_caller]
fn check(pairs: &[Pair]) {
    let origin = Origin::start();
    let mut config = format!("upstream: {}\nroutes:\n", origin.url());
    for (number, Pair { key, .. }) in pairs.iter().enumerate() {
        let limits = format!("limits: [{{name: once-{number}, key: {key}, rate: 1/hour}}]");
        let mut route = |name: &str, path: &str| {
            let condition = format!("{{path: '{path}', header: {{x-pair: '{number}'}}}}");
            writeln!(config, "  - {{name: {name}-{number}, match: {condition}, {limits}}}").expect("memory");
        };
        route("one", "/one/{part}");
        // A route without the segment cannot count by it.
        if *key != "path.part" {
            route("rest", "/*");
        }
    }
    let gateway = Gateway::start(config);
    for (number, Pair { key, first, second, budget }) in pairs.iter().enumerate() {
        let status = |ask: &Asks| ask(&gateway).header("X-Pair", &number.to_string()).status();
        assert_eq!(status(first), 200, "the first by {key}");
        let expected = match budget {
            Shared => 429,
            Apart => 200,
        };
        assert_eq!(status(second), expected, "the second by {key}");
    }
}

#[test]
fn headers_cookies_queries_and_captures() {
    check(&[
        pair("header.x-key", |g| g.get("/").header("X-Key", "a"), |g| g.get("/x").header("x-kEY", "a"), Shared),
        pair("header.x-key", |g| g.get("/").header("X-Key", "a"), |g| g.get("/").header("X-Key", "b"), Apart),
        pair("header.x-key", |g| g.get("/").header("X-Key", "a"), |g| g.get("/").header("X-Key", "A"), Apart),
        pair("cookie.s", |g| g.get("/").header("Cookie", "a=1; s=x"), |g| g.get("/").header("Cookie", "s=x"), Shared),
        pair("cookie.s", |g| g.get("/").header("Cookie", "s=x"), |g| g.get("/").header("Cookie", "s=y"), Apart),
        pair("query.q", |g| g.get("/?q=a%20b"), |g| g.get("/?x=1&q=a+b"), Shared),
        pair("query.q", |g| g.get("/?q=a"), |g| g.get("/?q=b"), Apart),
        pair("path.part", |g| g.get("/one/a"), |g| g.get("/ONE/%61/"), Shared),
        pair("path.part", |g| g.get("/one/a"), |g| g.get("/one/b"), Apart),
    ]);
}

#[test]
fn fields_of_forms() {
    check(&[
        pair("form.user", |g| g.post("/").form("user=al&p=1"), |g| g.post("/").form("p=2&user=al"), Shared),
        pair("form.user", |g| g.post("/").form("user=al"), |g| g.post("/").form("user=bo"), Apart),
        pair("form.user", |g| g.post("/").form("user=a%6C"), |g| g.post("/").form("us%65r=al"), Shared),
        pair("form.user", |g| g.post("/").form("user=al"), |g| g.post("/").body(MULTIPART, multipart("al")), Shared),
        pair(
            "form.user",
            |g| g.post("/").body(MULTIPART, multipart("al")),
            |g| g.post("/").body(MULTIPART, multipart("bo")),
            Apart,
        ),
    ]);
}

fn multipart(user: &str) -> String {
    format!(
        "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nuser=eve\r\n--cut\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\n{user}\r\n--cut--\r\n"
    )
}

#[test]
fn values_of_json() {
    check(&[
        pair(
            "json.auth.user",
            |g| g.post("/").json(r#"{"auth": {"user": "al"}}"#),
            |g| g.post("/").json(r#"{"x": [1, {}], "auth": {"pass": 1, "user": "\u0061l"}}"#),
            Shared,
        ),
        pair(
            "json.auth.user",
            |g| g.post("/").json(r#"{"auth": {"user": "al"}}"#),
            |g| g.post("/").json(r#"{"auth": {"user": "bo"}}"#),
            Apart,
        ),
        pair("json.id", |g| g.post("/").json(r#"{"id": 7}"#), |g| g.post("/").json(r#"{"id": "7"}"#), Shared),
    ]);
}

#[test]
fn param_finds_a_field_wherever_it_stands() {
    check(&[
        pair("param.user", |g| g.get("/?user=al"), |g| g.post("/").form("user=al"), Shared),
        pair("param.user", |g| g.post("/").form("user=al"), |g| g.post("/").json(r#"{"user": "al"}"#), Shared),
        pair("param.user", |g| g.post("/").form("user=al"), |g| g.post("/").body(MULTIPART, multipart("al")), Shared),
        pair("param.user", |g| g.post("/").form("user=al"), |g| g.post("/").json(r#"{"user": "bo"}"#), Apart),
    ]);
}

#[test]
fn credentials() {
    // alice:secret, alice:other, bob:secret
    check(&[
        pair(
            "bearer",
            |g| g.get("/").header("Authorization", "Bearer one"),
            |g| g.get("/").header("Authorization", "bearer one"),
            Shared,
        ),
        pair(
            "bearer",
            |g| g.get("/").header("Authorization", "Bearer one"),
            |g| g.get("/").header("Authorization", "Bearer two"),
            Apart,
        ),
        pair(
            "basic.user",
            |g| g.get("/").header("Authorization", "Basic YWxpY2U6c2VjcmV0"),
            |g| g.get("/").header("Authorization", "basic YWxpY2U6b3RoZXI="),
            Shared,
        ),
        pair(
            "basic.user",
            |g| g.get("/").header("Authorization", "Basic YWxpY2U6c2VjcmV0"),
            |g| g.get("/").header("Authorization", "Basic Ym9iOnNlY3JldA=="),
            Apart,
        ),
    ]);
}

#[test]
fn parts_of_the_request_itself() {
    check(&[
        pair("host", |g| g.get("/").host("A.example"), |g| g.get("/x").host("a.example.:80"), Shared),
        pair("host", |g| g.get("/").host("a.example"), |g| g.get("/").host("b.example"), Apart),
        pair("method", |g| g.get("/"), |g| g.get("/x"), Shared),
        pair("method", |g| g.get("/"), |g| g.post("/").form(""), Apart),
        pair("path", |g| g.get("/a?x"), |g| g.get("/%61/?y"), Shared),
        pair("path", |g| g.get("/a"), |g| g.get("/b"), Apart),
        pair("route", |g| g.get("/one/a"), |g| g.get("/one/b"), Shared),
        pair("route", |g| g.get("/one/a"), |g| g.get("/b"), Apart),
        pair("[]", |g| g.get("/"), |g| g.post("/x").from("127.0.0.2").form(""), Shared),
    ]);
}

#[test]
fn more_than_eight_values_are_refused() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits: [{{name: once, key: param.user, rate: 1/hour}}]", origin.url()));
    let form = |values: usize| (0..values).map(|value| format!("user={value}")).collect::<Vec<_>>().join("&");
    assert_eq!(gateway.post("/").form(&form(9)).status(), 400);
    assert_eq!(origin.count(), 0);
    assert_eq!(gateway.post("/").form(&form(8)).status(), 200);
}
