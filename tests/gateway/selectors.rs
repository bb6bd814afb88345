//! Every selector: two requests that share a budget, and two that do not.

use self::Budget::{Apart, Shared};
use crate::support::{Gateway, Origin, Request};

const MULTIPART: &str = "multipart/form-data; boundary=cut";

/// A gateway that lets each key pass once.
fn once_for_each(origin: &Origin, key: &str) -> Gateway {
    let limit = format!("    limits:\n      - {{name: once, key: {key}, rate: 1/hour}}\n");
    let captured = format!("  - name: one\n    match: /one/{{part}}\n{limit}");
    // A route without the segment cannot count by it.
    let rest =
        if key.contains("path.part") { String::new() } else { format!("  - name: rest\n    match: /*\n{limit}") };
    Gateway::start(format!("upstream: {}\nroutes:\n{captured}{rest}", origin.url()))
}

type Asks = fn(&Gateway) -> Request;

/// Sends two requests; the second is denied exactly when both have one key.
#[track_caller]
fn check(key: &str, first: Asks, second: Asks, budget: Budget) {
    let origin = Origin::start();
    let gateway = once_for_each(&origin, key);
    assert_eq!(first(&gateway).status(), 200, "the first by {key}");
    let expected = match budget {
        Shared => 429,
        Apart => 200,
    };
    assert_eq!(second(&gateway).status(), expected, "the second by {key}");
}

/// Whether two requests share one budget.
#[derive(Clone, Copy)]
enum Budget {
    Shared,
    Apart,
}

#[test]
fn headers_cookies_queries_and_captures() {
    check("header.x-key", |g| g.get("/").header("X-Key", "a"), |g| g.get("/x").header("x-kEY", "a"), Shared);
    check("header.x-key", |g| g.get("/").header("X-Key", "a"), |g| g.get("/").header("X-Key", "b"), Apart);
    check("header.x-key", |g| g.get("/").header("X-Key", "a"), |g| g.get("/").header("X-Key", "A"), Apart);
    check("cookie.s", |g| g.get("/").header("Cookie", "a=1; s=x"), |g| g.get("/").header("Cookie", "s=x"), Shared);
    check("cookie.s", |g| g.get("/").header("Cookie", "s=x"), |g| g.get("/").header("Cookie", "s=y"), Apart);
    check("query.q", |g| g.get("/?q=a%20b"), |g| g.get("/?x=1&q=a+b"), Shared);
    check("query.q", |g| g.get("/?q=a"), |g| g.get("/?q=b"), Apart);
    check("path.part", |g| g.get("/one/a"), |g| g.get("/ONE/%61/"), Shared);
    check("path.part", |g| g.get("/one/a"), |g| g.get("/one/b"), Apart);
}

#[test]
fn fields_of_forms() {
    check("form.user", |g| g.post("/").form("user=al&p=1"), |g| g.post("/").form("p=2&user=al"), Shared);
    check("form.user", |g| g.post("/").form("user=al"), |g| g.post("/").form("user=bo"), Apart);
    check("form.user", |g| g.post("/").form("user=a%6C"), |g| g.post("/").form("us%65r=al"), Shared);
    check("form.user", |g| g.post("/").form("user=al"), |g| g.post("/").body(MULTIPART, multipart("al")), Shared);
    check(
        "form.user",
        |g| g.post("/").body(MULTIPART, multipart("al")),
        |g| g.post("/").body(MULTIPART, multipart("bo")),
        Apart,
    );
}

fn multipart(user: &str) -> String {
    format!(
        "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nuser=eve\r\n--cut\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\n{user}\r\n--cut--\r\n"
    )
}

#[test]
fn values_of_json() {
    check(
        "json.auth.user",
        |g| g.post("/").json(r#"{"auth": {"user": "al"}}"#),
        |g| g.post("/").json(r#"{"x": [1, {}], "auth": {"pass": 1, "user": "\u0061l"}}"#),
        Shared,
    );
    check(
        "json.auth.user",
        |g| g.post("/").json(r#"{"auth": {"user": "al"}}"#),
        |g| g.post("/").json(r#"{"auth": {"user": "bo"}}"#),
        Apart,
    );
    check("json.id", |g| g.post("/").json(r#"{"id": 7}"#), |g| g.post("/").json(r#"{"id": "7"}"#), Shared);
}

#[test]
fn param_finds_a_field_wherever_it_stands() {
    check("param.user", |g| g.get("/?user=al"), |g| g.post("/").form("user=al"), Shared);
    check("param.user", |g| g.post("/").form("user=al"), |g| g.post("/").json(r#"{"user": "al"}"#), Shared);
    check("param.user", |g| g.post("/").form("user=al"), |g| g.post("/").body(MULTIPART, multipart("al")), Shared);
    check("param.user", |g| g.post("/").form("user=al"), |g| g.post("/").json(r#"{"user": "bo"}"#), Apart);
}

#[test]
fn credentials() {
    // alice:secret, alice:other, bob:secret
    check(
        "bearer",
        |g| g.get("/").header("Authorization", "Bearer one"),
        |g| g.get("/").header("Authorization", "bearer one"),
        Shared,
    );
    check(
        "bearer",
        |g| g.get("/").header("Authorization", "Bearer one"),
        |g| g.get("/").header("Authorization", "Bearer two"),
        Apart,
    );
    check(
        "basic.user",
        |g| g.get("/").header("Authorization", "Basic YWxpY2U6c2VjcmV0"),
        |g| g.get("/").header("Authorization", "basic YWxpY2U6b3RoZXI="),
        Shared,
    );
    check(
        "basic.user",
        |g| g.get("/").header("Authorization", "Basic YWxpY2U6c2VjcmV0"),
        |g| g.get("/").header("Authorization", "Basic Ym9iOnNlY3JldA=="),
        Apart,
    );
}

#[test]
fn parts_of_the_request_itself() {
    check("host", |g| g.get("/").host("A.example"), |g| g.get("/x").host("a.example.:80"), Shared);
    check("host", |g| g.get("/").host("a.example"), |g| g.get("/").host("b.example"), Apart);
    check("method", |g| g.get("/"), |g| g.get("/x"), Shared);
    check("method", |g| g.get("/"), |g| g.post("/").form(""), Apart);
    check("path", |g| g.get("/a?x"), |g| g.get("/%61/?y"), Shared);
    check("path", |g| g.get("/a"), |g| g.get("/b"), Apart);
    check("route", |g| g.get("/one/a"), |g| g.get("/one/b"), Shared);
    check("route", |g| g.get("/one/a"), |g| g.get("/b"), Apart);
    check("[]", |g| g.get("/"), |g| g.post("/x").from("127.0.0.2").form(""), Shared);
}

#[test]
fn more_than_eight_values_are_refused() {
    let origin = Origin::start();
    let gateway = once_for_each(&origin, "param.user");
    let form = |values: usize| (0..values).map(|value| format!("user={value}")).collect::<Vec<_>>().join("&");
    assert_eq!(gateway.post("/").form(&form(9)).status(), 400);
    assert_eq!(origin.count(), 0);
    assert_eq!(gateway.post("/").form(&form(8)).status(), 200);
}
