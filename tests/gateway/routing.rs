//! The route of a request, and its upstream.

use crate::support::{Answer, Gateway, Origin};

fn named(name: &'static str) -> Origin {
    Origin::answering(move |_| Answer::ok(name))
}

#[test]
fn a_route_is_met_by_its_path_its_host_its_fields_or_its_clients() {
    let (inside, outside) = (named("inside"), named("outside"));
    let conditions = [
        "path_regex: '^/v[0-9]+/login$'",
        "host: '*.example.com'",
        "header: {x-app: 'mobile*'}",
        "cookie: {beta: 'y*'}",
        "client: [here]",
    ];
    let routes = conditions.map(|condition| format!("  - {{match: {{{condition}}}, upstream: {}}}\n", inside.url()));
    let lists = "lists: {here: {addresses: [127.0.0.2]}}";
    let gateway = Gateway::start(format!("upstream: {}\n{lists}\nroutes:\n{}", outside.url(), routes.concat()));
    let get = || gateway.get("/");
    for (met, missed) in [
        (gateway.get("/v12/LOGIN/"), gateway.get("/vx/login")),
        (get().host("a.b.EXAMPLE.com:81"), get().host("badexample.com")),
        (get().header("X-App", "mobile 2"), get().header("X-App", "web")),
        (get().header("Cookie", "a=b; beta=yes"), get().header("Cookie", "beta=no")),
        (get().from("127.0.0.2"), get()),
    ] {
        let asked = String::from_utf8_lossy(&met.bytes()).into_owned();
        assert_eq!((met.send().text().as_str(), missed.send().text().as_str()), ("inside", "outside"), "{asked}");
    }
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
