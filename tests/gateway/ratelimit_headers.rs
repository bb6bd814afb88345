//! The `RateLimit` fields of answers.

use crate::support::{Answer, Gateway, Origin, Response};

fn limited(origin: &Origin, limits: &str) -> Gateway {
    Gateway::start(format!("upstream: {}\n{limits}", origin.url()))
}

/// The number after `name=` in a header like `"pace";r=17;t=42`.
fn parameter(header: &str, name: &str) -> u64 {
    let value = header.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {header}"))
}

fn has_none(response: &Response) -> bool {
    !response.headers.names().iter().any(|name| name.starts_with("ratelimit") || name.starts_with("x-ratelimit"))
}

#[test]
fn the_policy_and_what_is_left_of_it_are_shown() {
    let origin = Origin::start();
    let gateway = limited(&origin, "limits:\n  - {name: login-pace, key: client_ip, rate: 20/minute}");
    for left in [19, 18, 17] {
        let response = gateway.get("/").send();
        assert_eq!(response.header("ratelimit-policy"), Some("\"login-pace\";q=20;w=60"));
        let header = response.header("ratelimit").expect("a RateLimit header");
        assert!(header.starts_with("\"login-pace\";"), "{header}");
        assert_eq!(parameter(header, "r"), left);
        assert!(parameter(header, "t") <= 60, "{header}");
        assert_eq!(response.header("retry-after"), None);
    }
}

#[test]
fn a_denial_shows_that_nothing_is_left() {
    let origin = Origin::start();
    let gateway = limited(&origin, "limits:\n  - {name: pace, key: client_ip, rate: 1/hour}");
    assert_eq!(gateway.get("/").status(), 200);
    let denied = gateway.get("/").send();
    let header = denied.header("ratelimit").expect("a RateLimit header");
    assert_eq!(parameter(header, "r"), 0);
    assert!((3500..=3600).contains(&parameter(header, "t")), "{header}");
    assert_eq!(denied.header("ratelimit-policy"), Some("\"pace\";q=1;w=3600"));
}

#[test]
fn further_rates_are_numbered_and_the_closest_to_exhaustion_is_named() {
    let origin = Origin::start();
    let gateway = limited(&origin, "limits:\n  - {name: pace, key: client_ip, rate: 100/second; 10/minute; 200/hour}");
    let response = gateway.get("/").send();
    assert_eq!(
        response.headers.all("ratelimit-policy").join(", "),
        "\"pace\";q=100;w=1, \"pace/2\";q=10;w=60, \"pace/3\";q=200;w=3600"
    );
    let header = response.header("ratelimit").expect("a RateLimit header");
    assert!(header.starts_with("\"pace/2\";r=9;"), "{header}");
}

#[test]
fn limits_that_look_into_bodies_show_only_the_wait() {
    let origin = Origin::start();
    let gateway = limited(&origin, "limits:\n  - {name: user, key: param.user, rate: 1/hour}");
    let first = gateway.post("/").form("user=al").send();
    assert!(first.status == 200 && has_none(&first));
    let denied = gateway.post("/").form("user=al").send();
    assert!(denied.status == 429 && has_none(&denied));
    assert!(denied.header("retry-after").is_some());
}

#[test]
fn a_limit_says_how_much_of_it_is_shown() {
    let origin = Origin::start();
    for (headers, shows, waits) in [("full", true, true), ("retry_after", false, true), ("none", false, false)] {
        let gateway =
            limited(&origin, &format!("limits:\n  - {{name: pace, key: client_ip, rate: 1/hour, headers: {headers}}}"));
        assert_eq!(has_none(&gateway.get("/").send()), !shows, "{headers}");
        let denied = gateway.get("/").send();
        assert_eq!(has_none(&denied), !shows, "{headers}");
        assert_eq!(denied.header("retry-after").is_some(), waits, "{headers}");
    }
}

#[test]
fn a_shadow_limit_is_not_shown() {
    let origin = Origin::start();
    let gateway = limited(&origin, "limits:\n  - {name: tried, key: client_ip, rate: 1/hour, shadow: true}");
    assert!(has_none(&gateway.get("/").send()));
}

#[test]
fn the_kind_of_headers_is_chosen_for_the_site() {
    let origin = Origin::start();
    for (kind, ietf, legacy) in
        [("ietf", true, false), ("legacy", false, true), ("both", true, true), ("off", false, false)]
    {
        let gateway =
            limited(&origin, &format!("headers: {kind}\nlimits:\n  - {{name: pace, key: client_ip, rate: 2/hour}}"));
        let response = gateway.get("/").send();
        assert_eq!(response.header("ratelimit").is_some(), ietf, "{kind}");
        assert_eq!(response.header("ratelimit-policy").is_some(), ietf, "{kind}");
        assert_eq!(response.header("x-ratelimit-limit"), legacy.then_some("2"), "{kind}");
        assert_eq!(response.header("x-ratelimit-remaining"), legacy.then_some("1"), "{kind}");
        assert_eq!(response.header("x-ratelimit-reset").is_some(), legacy, "{kind}");
        gateway.get("/").send();
        assert!(gateway.get("/").send().header("retry-after").is_some(), "{kind}");
    }
}

#[test]
fn fields_of_the_application_are_kept_beside_them() {
    let origin = Origin::answering(|_| Answer::new(200, &[("RateLimit", "\"app\";r=5;t=1"), ("X-App", "1")], "hello"));
    let gateway = limited(&origin, "limits:\n  - {name: pace, key: client_ip, rate: 9/hour}");
    let response = gateway.get("/").send();
    let values = response.headers.all("ratelimit").join(", ");
    assert!(values.contains("\"app\";r=5;t=1") && values.contains("\"pace\";r=8;"), "{values}");
    assert_eq!(response.header("x-app"), Some("1"));
}
