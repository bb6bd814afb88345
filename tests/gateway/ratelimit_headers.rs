//! The `RateLimit` fields of answers.

use crate::support::{Gateway, Origin, Response};

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
fn the_kind_of_headers_is_chosen_for_the_site() {
    let origin = Origin::start();
    for (kind, shows) in [("both", true), ("off", false)] {
        let gateway =
            limited(&origin, &format!("headers: {kind}\nlimits:\n  - {{name: pace, key: client_ip, rate: 2/hour}}"));
        let response = gateway.get("/").send();
        assert_eq!(response.header("ratelimit").is_some(), shows, "{kind}");
        assert_eq!(response.header("ratelimit-policy").is_some(), shows, "{kind}");
        assert_eq!(response.header("x-ratelimit-limit"), shows.then_some("2"), "{kind}");
        assert_eq!(response.header("x-ratelimit-remaining"), shows.then_some("1"), "{kind}");
        assert_eq!(response.header("x-ratelimit-reset").is_some(), shows, "{kind}");
        gateway.get("/").send();
        assert!(gateway.get("/").send().header("retry-after").is_some(), "{kind}");
    }
}
