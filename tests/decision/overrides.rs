//! Requests that applications read in more than one way, and when the body must be read to decide.

use portcullis::rules::decision::DenialCause;
use portcullis::rules::limit::{Limit, Missing};
use portcullis::rules::route::Condition;
use portcullis::words::glob::Glob;
use proptest::prelude::*;

use crate::support::{World, ask, form, limit, world};

fn limited_put() -> World {
    let mut world = world();
    world.route("PUT /thing", vec![limit("put", "", "1/hour")]);
    world
}

#[test]
fn an_override_is_counted_as_the_method_it_names() {
    for request in [
        "PUT /thing",
        "POST /thing\nX-HTTP-Method-Override: PUT",
        "POST /thing\nX-HTTP-Method: put",
        "GET /thing\nX-Method-Override: Put",
        "POST /thing?_method=put",
        "POST /thing?_method=post&_method=put",
    ] {
        assert_eq!(limited_put().passing(&ask(request), 3), 1, "{request}");
    }
    assert_eq!(limited_put().passing(&form("/thing", "_method=PUT"), 3), 1);
    assert_eq!(limited_put().passing(&ask("POST /thing"), 3), 3);
}

#[test]
fn an_override_never_makes_a_request_match_less() {
    let requests = [
        "PUT /thing\nX-HTTP-Method-Override: GET",
        "PUT /thing?_method=GET",
        "PUT /thing?_method=",
        "PUT /thing\nX-HTTP-Method-Override: nonsense",
    ];
    for request in requests {
        let told = limited_put().decide(&ask(request));
        assert_eq!((told.charges, told.route.as_deref()), (1, Some("PUT /thing")), "{request}");
    }
}

#[test]
fn a_method_behind_the_end_of_what_is_read_is_any_method() {
    let padded = || form("/thing", "pad=xxx").cut_short();
    assert_eq!(limited_put().passing(&padded(), 3), 1);
    let picture = || ask("POST /thing\nContent-Type: image/png").body("PNG").cut_short();
    assert_eq!(limited_put().passing(&picture(), 3), 3);
    let mut world = world();
    world.route("DELETE /thing", vec![]).only = Some(vec![]);
    assert_eq!(world.decide(&padded()).cause, Some(DenialCause::NotOnList));
}

#[test]
fn a_method_that_decoys_hide_is_any_method() {
    let decoys = r#""_method":"x","#.repeat(64);
    let json = "POST /thing\nContent-Type: application/json";
    let parts = "POST /thing\nContent-Type: multipart/form-data; boundary=b";
    let part = |headers: &str| format!("--b\r\n{headers}\r\n\r\nPUT\r\n--b--\r\n");
    let field = "Content-Disposition: form-data; name=\"_method\"\r\n\r\nx";
    for hidden in [
        ask(json).body(&format!("{{{decoys}\"_method\":\"PUT\"}}")),
        ask(json).body("// x\n{\"_method\":\"PUT\"}"),
        ask(json).body("{\"_\\u006dethod\":\"PUT\",}"),
        ask(parts).body(
            &(format!("--b\r\n{field}\r\n").repeat(64) + &part("Content-Disposition: form-data; name=\"_method\"")),
        ),
        ask(parts).body(&part("Content-Disposition: form-data; name==\"_method\"")),
        form("/thing", "_method[]=PUT"),
        form("/thing", "?_method=PUT"),
        form("/thing", "x[_method]=PUT"),
        form("/thing?x[_method]=PUT", "a=b"),
        ask("POST /thing?%5B_method=PUT"),
    ] {
        assert_eq!(limited_put().passing(&hidden, 3), 1, "{hidden:?}");
    }
    for plain in [
        form("/thing", "payment[total]=1;x"),
        form("/thing", "note=a;b"),
        ask("POST /thing?a=1;b=2"),
        ask("POST /thing\nContent-Type: text/plain").body("level=info msg=\"x\""),
        ask(json).body("{\"a\": 1,}"),
    ] {
        assert_eq!(limited_put().passing(&plain, 3), 3, "{plain:?}");
    }
}

#[test]
fn a_late_method_is_any_method_whatever_was_sent() {
    let posted = || {
        let mut world = world();
        world.route("POST /login", vec![limit("login", "client_ip", "1/hour")]);
        world
    };
    for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"] {
        for kind in [
            "Content-Type: application/x-www-form-urlencoded",
            "Content-Type: multipart/form-data; boundary=b",
            "Content-Type: application/json; charset=utf-8",
            "Content-Type: application/vnd.api+JSON",
            "Content-Type: text/plain",
            "",
        ] {
            let late = || ask(&format!("{method} /login\n{kind}")).body("padding=xxx").cut_short();
            assert_eq!(posted().passing(&late(), 3), 1, "{method} {kind}");
        }
        let picture = || ask(&format!("{method} /login\nContent-Type: image/png")).body("PNG").cut_short();
        assert_eq!(posted().passing(&picture(), 3), 3, "{method}");
    }
}

#[test]
fn a_form_in_a_coding_that_nobody_reads_may_say_any_method() {
    let kind = "Content-Type: application/x-www-form-urlencoded";
    for coding in ["compress", "gzip", "x-unknown", "gzip, gzip, gzip, gzip, gzip"] {
        for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let mut world = world();
            world.route("POST /login", vec![limit("login", "client_ip", "1/hour")]);
            let unread = ask(&format!("{method} /login\n{kind}\nContent-Encoding: {coding}")).body("_method=POST&x");
            assert_eq!(world.passing(&unread, 3), 1, "{method} {coding}");
        }
    }
}

#[test]
fn rules_of_every_reading_hold_and_the_plain_one_leads() {
    let mut world = world();
    world.route("POST /a", vec![limit("post", "", "9/hour")]);
    world.route("GET /a", vec![limit("get", "", "9/hour")]);
    world.route("/*", vec![limit("rest", "", "9/hour")]);
    let told = world.decide(&ask("GET /a\nX-HTTP-Method-Override: POST"));
    assert_eq!((told.charges, told.route.as_deref()), (3, Some("GET /a")));
    let told = world.decide(&ask("GET /a"));
    assert_eq!((told.charges, told.route.as_deref()), (1, Some("GET /a")));
}

#[test]
fn an_override_opens_no_second_budget_of_a_key_by_route() {
    let mut world = world();
    world.everywhere(limit("per-route", "client_ip route", "1/hour"));
    world.route("POST /a", vec![]);
    world.route("/*", vec![]);
    assert!(world.passes(&ask("POST /a")));
    assert!(!world.passes(&ask("GET /a\nX-HTTP-Method-Override: POST")));
}

#[test]
fn an_override_opens_no_second_budget_of_a_key_by_method() {
    let mut world = world();
    world.everywhere(limit("per-method", "client_ip method", "1/hour"));
    assert!(world.passes(&ask("DELETE /a")));
    assert!(!world.passes(&ask("POST /a\nX-HTTP-Method-Override: delete")));
    assert!(!world.passes(&ask("PATCH /a?_method=Delete")));
    assert!(!world.passes(&form("/a", "_method=DELETE")));
    assert!(world.passes(&ask("POST /a")));
}

#[test]
fn the_body_is_read_only_where_a_rule_may_stand_in_it() {
    let mut world = world();
    let office = world.list("office", &["198.51.100.0/24"]);
    let abusers = world.list("abusers", &["203.0.113.0/24"]);
    world.policy.access.allow = vec![office];
    world.policy.access.deny = vec![abusers];
    world.route("POST /login", vec![limit("user", "param.username", "9/hour")]);
    world.route("POST /upload", vec![limit("upload", "client_ip", "9/hour")]);
    world.route("DELETE /files/*", vec![limit("delete", "client_ip", "9/hour")]);
    world.route("PUT /plain", vec![]);
    let needs = |request| world.needs_body(&ask(request));
    assert!(needs("POST /login"));
    assert!(!needs("POST /upload"));
    assert!(!needs("POST /else"));
    // A `_method` there would bring a limit with it; the one below would bring nothing.
    assert!(needs("POST /files/1"));
    assert!(needs("GET /login"));
    assert!(!needs("POST /plain"));
    assert!(!world.needs_body(&ask("POST /login").from("198.51.100.1")));
    assert!(!world.needs_body(&ask("POST /login").from("203.0.113.1")));
}

#[test]
fn for_an_allowed_client_the_body_is_read_only_for_a_route_it_may_not_take() {
    let mut world = world();
    let office = world.list("office", &["198.51.100.0/24"]);
    world.policy.access.allow = vec![office];
    world.route("DELETE /files/*", vec![limit("delete", "client_ip", "9/hour")]).only = Some(vec![]);
    let told = world.decide(&form("/files/1", "_method=delete").from("198.51.100.1"));
    assert_eq!(told.cause, Some(DenialCause::NotOnList));
    assert!(!world.needs_body(&ask("DELETE /files/1").from("198.51.100.1")), "already refused");
}

#[test]
fn a_limit_by_a_field_is_met_however_the_request_is_labelled() {
    let mut world = world();
    world.route("POST /login", vec![Limit { missing: Missing::Skip, ..limit("user", "param.username", "1/hour") }]);
    assert!(world.passes(&form("/login", "username=alice")));
    assert!(!world.passes(&ask("POST /login\nContent-Type: text/plain").body("username=alice")));
    assert!(!world.passes(&ask("POST /login\nContent-Type: application/json").body(r#"{"username": "alice"}"#)));
    assert!(!world.passes(&ask("POST /login?username=alice")));
}

/// Routes that look at everything a client can repeat or add.
fn watchful() -> World {
    let mut world = world();
    let by = |name: &str| limit(name, "client_ip query.u header.x-k", "9/hour");
    world.everywhere(by("everywhere"));
    world.route("POST /a", vec![by("post")]);
    world.route("GET,PUT /a", vec![by("get")]);
    let queries = vec![("do".into(), Glob::new("log*"))];
    world.route_where("query", Condition { queries, ..Condition::default() }, vec![by("query")]);
    let cookies = vec![("who".into(), Glob::new("a?"))];
    world.route_where("cookie", Condition { cookies, ..Condition::default() }, vec![by("cookie")]);
    let headers = vec![("x-k".parse().unwrap(), Glob::new("*1"))];
    world.route_where("header", Condition { headers, ..Condition::default() }, vec![by("header")]);
    world.route("/{id}", vec![limit("captured", "path.id", "9/hour")]);
    world.route("/*", vec![by("rest")]);
    world
}

fn some_of(values: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(values), 0..4)
}

proptest! {
    /// A value where there was none is another request: the operator's routes say where that goes.
    #[test]
    fn no_override_and_no_repeated_value_takes_a_charge_away(
        method in prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "DELETE"]),
        path in prop::sample::select(vec!["/a", "/b", "/b/c"]),
        action in prop::sample::select(vec!["do=login", "do=show"]),
        cookie in prop::sample::select(vec!["Cookie: who=ab", "Cookie: who=zz"]),
        key in prop::sample::select(vec!["X-K: k1", "X-K: k2"]),
        query in some_of(&["do=login", "do=show", "u=2", "u=3", "_method=PUT", "_method=x", "_method="]),
        headers in some_of(&["X-K: k1", "X-K: k3", "Cookie: who=ac", "Cookie: who=", "X-Http-Method: get",
            "X-HTTP-Method-Override: POST", "X-Method-Override: DELETE"]),
    ) {
        let world = watchful();
        let charged = |query: &[&str], headers: &[&str]| {
            let target = format!("{method} {path}?u=1&{action}&{}", query.join("&"));
            world.decide(&ask(&[&[&*target, cookie, key], headers].concat().join("\n"))).charged
        };
        let (plain, added) = (charged(&[], &[]), charged(&query, &headers));
        prop_assert!(plain.iter().all(|key| added.contains(key)), "{plain:?} {added:?}");
    }
}
