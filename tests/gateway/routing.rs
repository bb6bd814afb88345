//! The route of a request, and its upstream.

use crate::support::{Answer, Gateway, Origin, Request};

fn named(name: &'static str) -> Origin {
    Origin::answering(move |_| Answer::ok(name))
}

/// A gateway with one matching rule; what it matches is answered by `inside`, the rest by `outside`.
fn inside_or_outside(matching: &str, request: impl Fn(&Gateway) -> Request) -> String {
    let (inside, outside) = (named("inside"), named("outside"));
    let gateway = Gateway::start(format!(
        "upstream: {}\nupstreams:\n  inner: {{servers: [{}]}}\nlists:\n  here: {{addresses: [127.0.0.1]}}\nroutes:\n  - match: {matching}\n    upstream: inner",
        outside.url(),
        inside.url()
    ));
    request(&gateway).send().text()
}

#[track_caller]
fn check(matching: &str, request: impl Fn(&Gateway) -> Request, expected: &str) {
    assert_eq!(inside_or_outside(matching, request), expected, "{matching}");
}

#[test]
fn a_path_matches_exactly_or_as_a_prefix_or_with_captured_segments() {
    check("/admin/*", |gateway| gateway.get("/admin/users/7"), "inside");
    check("/admin/*", |gateway| gateway.get("/admin"), "inside");
    check("/admin/*", |gateway| gateway.get("/administrator"), "outside");
    check("/users/{id}", |gateway| gateway.get("/users/7"), "inside");
    check("/users/{id}", |gateway| gateway.get("/users/7/edit"), "outside");
    check("/users/{id}", |gateway| gateway.get("/users/"), "outside");
    check("/users/{id}/*", |gateway| gateway.get("/users/7/edit/now"), "inside");
    check("{path_regex: '^/v[0-9]+/login$'}", |gateway| gateway.get("/v12/LOGIN/"), "inside");
    check("{path_regex: '^/v[0-9]+/login$'}", |gateway| gateway.get("/vx/login"), "outside");
}

#[test]
fn a_host_matches_exactly_or_by_its_domain() {
    check("{host: '*.example.com'}", |gateway| gateway.get("/").host("api.example.com"), "inside");
    check("{host: '*.example.com'}", |gateway| gateway.get("/").host("a.b.EXAMPLE.com:81"), "inside");
    check("{host: '*.example.com'}", |gateway| gateway.get("/").host("badexample.com"), "outside");
    check("{host: api.example.com}", |gateway| gateway.get("/").host("www.example.com"), "outside");
}

#[test]
fn methods_match_without_case() {
    check("{methods: [put, Delete]}", |gateway| gateway.request("DELETE", "/x"), "inside");
    check("{methods: [put, Delete]}", |gateway| gateway.get("/x"), "outside");
    check("POST /x", |gateway| gateway.post("/x").form(""), "inside");
}

#[test]
fn headers_queries_and_cookies_match_by_glob() {
    check("{header: {x-app: 'mobile*'}}", |gateway| gateway.get("/").header("X-App", "mobile 2"), "inside");
    check("{header: {x-app: 'mobile*'}}", |gateway| gateway.get("/").header("X-App", "web"), "outside");
    check("{header: {x-app: '*'}}", |gateway| gateway.get("/"), "outside");
    check("{query: {action: login}}", |gateway| gateway.get("/?a=b&action=login"), "inside");
    check("{query: {action: login}}", |gateway| gateway.get("/?action=logout"), "outside");
    check("{cookie: {beta: 'y*'}}", |gateway| gateway.get("/").header("Cookie", "a=b; beta=yes"), "inside");
    check("{cookie: {beta: 'y*'}}", |gateway| gateway.get("/").header("Cookie", "beta=no"), "outside");
}

#[test]
fn clients_match_by_list() {
    check("{client: [here]}", |gateway| gateway.get("/"), "inside");
    check("{client: [here]}", |gateway| gateway.get("/").from("127.0.0.2"), "outside");
}

#[test]
fn the_first_route_that_matches_wins() {
    let (first, second, rest) = (named("first"), named("second"), named("rest"));
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - {{match: /a/b, upstream: {}}}\n  - {{match: /a/*, upstream: {}}}",
        rest.url(),
        first.url(),
        second.url()
    ));
    assert_eq!(gateway.get("/a/b").send().text(), "first");
    assert_eq!(gateway.get("/a/c").send().text(), "second");
    assert_eq!(gateway.get("/c").send().text(), "rest");
}

#[test]
fn several_servers_take_turns() {
    let (one, two) = (named("one"), named("two"));
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app:\n    servers: [{}, {}]\n    balance: round_robin",
        one.url(),
        two.url()
    ));
    for _ in 0..40 {
        assert_eq!(gateway.get("/").status(), 200);
    }
    // A runtime per core, each with its own turn: no more than the cores apart.
    assert!(one.count().abs_diff(two.count()) <= 16, "{} and {}", one.count(), two.count());
    assert!(one.count() > 0 && two.count() > 0);
}

#[test]
fn a_fixed_host_is_what_the_application_sees() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], host: app.internal}}",
        origin.url()
    ));
    assert_eq!(gateway.get("/").host("www.example.com").status(), 200);
    assert_eq!(origin.last().header("host"), Some("app.internal"));
    assert_eq!(origin.last().header("x-forwarded-host"), Some("www.example.com"));
}
