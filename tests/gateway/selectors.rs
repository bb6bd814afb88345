//! Every selector: normalisation, repeated values, missing values.

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
fn of_first_the_one_that_is_there_counts() {
    let key = "{first: [header.x-key, query.q, client_ip]}";
    check(key, |g| g.get("/").header("X-Key", "a"), |g| g.get("/?q=b").from("127.0.0.2").header("X-Key", "a"), Shared);
    check(key, |g| g.get("/").header("X-Key", "a"), |g| g.get("/?q=a"), Apart);
    check(key, |g| g.get("/"), |g| g.get("/x"), Shared);
    check(key, |g| g.get("/"), |g| g.get("/").from("127.0.0.2"), Apart);
    check(key, |g| g.get("/"), |g| g.get("/?q=127.0.0.1/32"), Apart);
}

#[test]
fn names_of_the_same_letters_share_a_budget_where_they_are_folded() {
    let key = "{param.user: {fold: letters}}";
    for spelling in
        ["%C3%80lic%C3%A9", "al%C4%B1ce", "a.lice", "!alice", "al+ice", "%3Cb1%3Ealice", "ali%26x1;ce", "ali%2501ce"]
    {
        let origin = Origin::start();
        let gateway = once_for_each(&origin, key);
        assert_eq!(gateway.post("/").form(&format!("user={spelling}")).status(), 200, "{spelling}");
        assert_eq!(gateway.post("/").form("user=alice").status(), 429, "{spelling}");
    }
    check(key, |g| g.post("/").form("user=alice"), |g| g.post("/").form("user=bob"), Apart);
    check(key, |g| g.post("/").form("user=!!"), |g| g.post("/").form("user=??"), Apart);
    let key = "{param.user: {fold: email}}";
    check(key, |g| g.post("/").form("user=a.b%2Bc@gmail.com"), |g| g.post("/").form("user=ab@googlemail.com"), Shared);
    check(key, |g| g.post("/").form("user=a.b@example.com"), |g| g.post("/").form("user=ab@example.com"), Apart);
    let key = "{param.user: {pattern: '[a-z]+'}}";
    check(key, |g| g.post("/").form("user=a1"), |g| g.post("/").form("user=b2"), Shared);
    check(key, |g| g.post("/").form("user=a"), |g| g.post("/").form("user=b"), Apart);
    check(key, |g| g.post("/").form("user=a1"), |g| g.post("/").form("x=y"), Apart);
}

#[test]
fn a_list_of_selectors_is_one_key_of_several_parts() {
    let key = "[client_ip, query.q]";
    check(key, |g| g.get("/?q=a"), |g| g.get("/?q=a"), Shared);
    check(key, |g| g.get("/?q=a"), |g| g.get("/?q=b"), Apart);
    check(key, |g| g.get("/?q=a"), |g| g.get("/?q=a").from("127.0.0.2"), Apart);
    let key = "[query.a, query.b]";
    check(key, |g| g.get("/?a=x&b=yz"), |g| g.get("/?a=xy&b=z"), Apart);
    check(key, |g| g.get("/?a=x"), |g| g.get("/?b=x"), Apart);
}

#[test]
fn a_client_may_be_counted_by_a_wider_net() {
    let key = "{client_ip: {v4: 24, v6: 48}}";
    check(key, |g| g.get("/").from("127.0.0.1"), |g| g.get("/").from("127.0.0.200"), Shared);
    check(key, |g| g.get("/").from("127.0.0.1"), |g| g.get("/").from("127.0.1.1"), Apart);
}

#[test]
fn values_people_type_are_normalised() {
    let first: Asks = |g| g.post("/").form("user=Stra%C3%9Fe%20Caf%C3%A9");
    check("param.user", first, |g| g.post("/").form("user=%20STRASSE+CAFE%CC%81%20"), Shared);
    check("{param.user: {raw: true}}", first, |g| g.post("/").form("user=%20STRASSE+CAFE%CC%81%20"), Apart);
    check("param.user", |g| g.post("/").form("user=alice"), |g| g.post("/").form("user=%EF%BD%81lice"), Shared);
    check("query.user", |g| g.get("/?user=alice"), |g| g.get("/?user=Alice"), Apart);
}

#[test]
fn a_field_sent_several_times_counts_against_every_value() {
    check("param.user", |g| g.post("/").form("user=al&user=bo"), |g| g.post("/").form("user=al"), Shared);
    check("param.user", |g| g.post("/").form("user=al&user=bo"), |g| g.post("/").form("user=bo"), Shared);
    check("param.user", |g| g.post("/?user=al").form("user=bo"), |g| g.get("/?user=al"), Shared);
    check("param.user", |g| g.post("/?user=al").form("user=bo"), |g| g.get("/?user=bo"), Shared);
    check("query.q", |g| g.get("/?q=a&q=b"), |g| g.get("/?q=b"), Shared);
    check(
        "header.x-key",
        |g| g.get("/").header("X-Key", "a").header("X-Key", "b"),
        |g| g.get("/").header("X-Key", "b"),
        Shared,
    );
    check("cookie.s", |g| g.get("/").header("Cookie", "s=a; s=b"), |g| g.get("/").header("Cookie", "s=b"), Shared);
    check("param.user", |g| g.post("/").json(r#"{"user":"al","user":"bo"}"#), |g| g.get("/?user=al"), Shared);
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

#[test]
fn requests_without_the_value_share_one_budget() {
    check("header.x-key", |g| g.get("/"), |g| g.get("/").from("127.0.0.2"), Shared);
    check("param.user", |g| g.get("/"), |g| g.post("/").form("other=1"), Shared);
    check("param.user", |g| g.get("/"), |g| g.post("/").form("user="), Shared);
    check("param.user", |g| g.post("/").json("{\"user\":"), |g| g.get("/"), Shared);
    check("bearer", |g| g.get("/"), |g| g.get("/").header("Authorization", "Basic YTpi"), Shared);
    check("param.user", |g| g.get("/"), |g| g.get("/?user=al"), Apart);
}

#[test]
fn a_limit_may_skip_or_deny_what_lacks_the_value() {
    let origin = Origin::start();
    let with = |missing: &str| {
        Gateway::start(format!(
            "upstream: {}\nlimits:\n  - {{name: keyed, key: header.x-key, rate: 1/hour, missing: {missing}}}",
            origin.url()
        ))
    };
    let gateway = with("skip");
    assert_eq!([gateway.get("/").status(), gateway.get("/").status()], [200, 200]);
    let gateway = with("deny");
    let reached = origin.count();
    assert_eq!(gateway.get("/").status(), 429);
    assert_eq!(origin.count(), reached);
    assert_eq!(gateway.get("/").header("X-Key", "a").status(), 200);
}
