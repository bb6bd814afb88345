//! The key of a request that lacks a part of it.

use std::time::Duration;

use portcullis::rules::key::{KeyPart, Spelling};
use portcullis::rules::limit::{Count, Limit, Missing, Rule};

use crate::support::{Ask, ask, form, limit, world};

fn keyed(missing: Missing) -> Limit {
    Limit { missing, ..limit("keyed", "header.x-key", "1/hour") }
}

#[test]
fn requests_without_the_part_share_one_budget() {
    let mut world = world();
    world.everywhere(keyed(Missing::Count));
    assert!(world.passes(&ask("GET /").from("192.0.2.1")));
    assert!(!world.passes(&ask("GET /").from("192.0.2.2")));
    assert!(!world.passes(&ask("GET /\nX-Key: ")));
    assert!(world.passes(&ask("GET /\nX-Key: one")));
}

#[test]
fn a_limit_that_skips_does_not_hold_for_them() {
    let mut world = world();
    world.everywhere(keyed(Missing::Skip));
    assert_eq!(world.passing(&ask("GET /"), 3), 3);
    assert_eq!(world.passing(&ask("GET /\nX-Key: one"), 3), 1);
    assert_eq!(world.decide(&ask("GET /")).reports.len(), 0);
}

#[test]
fn an_empty_value_beside_another_does_not_hide_it_from_a_limit_that_skips() {
    let mut world = world();
    world.everywhere(keyed(Missing::Skip));
    assert_eq!(world.passing(&ask("GET /\nX-Key: \nX-Key: one"), 3), 1);
    assert_eq!(world.passing(&ask("GET /\nX-Key: one"), 1), 0);
}

#[test]
fn a_limit_that_denies_denies_them_and_nothing_else_is_charged() {
    let mut world = world();
    world.everywhere(limit("first", "", "2/hour"));
    world.everywhere(keyed(Missing::Deny));
    let told = world.decide(&ask("GET /"));
    assert_eq!((told.denied_by, told.charges), (vec!["keyed".to_owned()], 0));
    assert_eq!((told.retry_after, told.decided_by.as_deref()), (Some(Duration::ZERO), Some("keyed")));
    assert!(!world.passes(&ask("GET /\nX-Key: one\nX-Key: ")));
    assert!(world.passes(&ask("GET /\nX-Key: one")));
    assert!(world.passes(&ask("GET /\nX-Key: two")));
    assert_eq!(world.decide(&ask("GET /\nX-Key: three")).denied_by, ["first"]);
}

#[test]
fn attempts_are_charged_though_a_part_is_missing() {
    let mut world = world();
    world.everywhere(Limit { count: Count::Attempts, ..limit("hammer", "", "2/hour") });
    world.everywhere(keyed(Missing::Deny));
    assert_eq!(world.passing(&ask("GET /"), 2), 0);
    let told = world.decide(&ask("GET /\nX-Key: one"));
    assert_eq!(told.denied_by, ["hammer"]);
}

#[test]
fn a_shadow_that_would_deny_them_lets_them_pass() {
    let mut world = world();
    world.everywhere(Limit { shadow: true, ..keyed(Missing::Deny) });
    world.everywhere(limit("all", "", "1/hour"));
    let told = world.decide(&ask("GET /"));
    assert!(told.passes && told.reports[0].applied.is_some() && told.reports[1].applied.is_none());
    assert!(!world.passes(&ask("GET /")));
}

#[test]
fn a_part_that_is_too_distant_is_missing() {
    let distant = || form("/login", "pad=xxx").cut_short();
    let login = |missing| {
        let mut world = world();
        world.route("POST /login", vec![Limit { missing, ..limit("user", "form.user", "1/hour") }]);
        world
    };
    assert_eq!(login(Missing::Count).passing(&distant(), 3), 1);
    assert_eq!(login(Missing::Skip).passing(&distant(), 3), 1, "what was not read may be there");
    assert_eq!(login(Missing::Deny).passing(&distant(), 3), 0);
    assert_eq!(login(Missing::Skip).passing(&form("/login", "pad=xxx"), 3), 3, "it is surely not there");
}

/// What nobody but an attacker writes, and what applications read `alice` in.
fn odd_logins() -> Vec<Ask> {
    let part = |headers: &str| {
        let text = format!("--b\r\n{headers}\r\n\r\nalice\r\n--b--\r\n");
        ask("POST /login\nContent-Type: multipart/form-data; boundary=b").body(&text)
    };
    let json = |text: &str| ask("POST /login\nContent-Type: application/json").body(text);
    let mut asks = vec![
        part("Content-Disposition: form-data; name==\"user\""),
        part("Content-Disposition: form-data; name =\"user\""),
        part("Content-Disposition: form-data; name=user"),
        part("Content-Disposition: form-data; name=\"][user\""),
        part("Content-Disposition: form-data;\r\n name=\"user\""),
        part("Content-Disposition: form-data; name=\"user\"\r\nContent-Transfer-Encoding: base64"),
        json(")]}'\n{\"user\": \"alice\"}"),
        json("# x\n{\"user\": \"alice\"}"),
        json("[{\"user\": \"alice\"}]"),
        json("{\"user\": [\"alice\"]}"),
        ask("POST /login\nContent-Type: text/plain").body("/**/{\"user\": \"alice\"}"),
        ask("POST /login\nContent-Type: application/x-www-form-urlencoded; a=1; b=2; c=3; d=4").body("user=alice"),
        ask("POST /login\nContent-Type: application/x-www-form-urlencoded; charset=ibm037").body("x=1"),
        form("/login", &format!("{}user=alice", "a=&".repeat(500))),
        form("/login?us%5Ber=alice", "x=1"),
        form("/login?x=1;y=2", "x=1"),
    ];
    for body in
        ["?user=alice", "][user=alice", "user%5B=alice", "us+er=alice", "us.er=alice", "a=%zz", "a=1;user=alice"]
    {
        asks.push(form("/login", body));
    }
    asks
}

#[test]
fn what_is_not_understood_is_not_missing() {
    for odd in odd_logins() {
        let mut world = world();
        world.route("POST /login", vec![Limit { missing: Missing::Skip, ..limit("user", "param.user", "1/hour") }]);
        assert!(world.passes(&form("/login", "x=not+understood;y")));
        assert!(!world.passes(&odd), "{odd:?} shares the budget of all that is not understood");
        assert_eq!(world.passing(&form("/login", "pad=xxx"), 3), 3);
        assert!(world.passes(&form("/login", "user=bob")));
    }
}

#[test]
fn a_limit_that_denies_what_is_missing_counts_what_is_found_beside_what_is_not_understood() {
    let mut world = world();
    world.route("POST /login", vec![Limit { missing: Missing::Deny, ..limit("user", "form.user", "1/hour") }]);
    assert!(!world.passes(&form("/login", "pad=1;x")));
    assert!(world.passes(&form("/login", "user=alice&x[user]=bob")));
    assert!(!world.passes(&form("/login", "user=carol&x[user]=bob")));
    assert!(!world.passes(&form("/login", "user=alice")));
}

#[test]
fn values_of_a_part_that_is_not_understood_are_new_each_time() {
    let mut world = world();
    let distinct = Some(KeyPart { selector: "param.user".parse().unwrap(), spelling: Spelling::Usual });
    let rule = Rule::Distinct("3/hour".parse().unwrap());
    world.route("POST /login", vec![Limit { rule, distinct, ..limit("guessing", "client_ip", "3/hour") }]);
    assert_eq!(world.passing(&form("/login", "user=alice"), 9), 9);
    assert_eq!(world.passing(&form("/login", "user=alice;x"), 9), 1);
    // One that is missing is one value.
    assert_eq!(world.passing(&form("/login", "pad=1").from("192.0.2.7"), 9), 9);
}

#[test]
fn cookies_and_credentials_that_are_not_understood_are_not_missing() {
    let check = |selector: &str, odd: &[&str], plain: &[&str]| {
        for line in odd {
            let mut world = world();
            world.everywhere(Limit { missing: Missing::Skip, ..limit("by", selector, "1/hour") });
            let asked = ask(&format!("GET /\n{line}"));
            assert_eq!(world.passing(&asked, 3), 1, "{selector}: {line}");
        }
        for line in plain {
            let mut world = world();
            world.everywhere(Limit { missing: Missing::Skip, ..limit("by", selector, "1/hour") });
            assert_eq!(world.passing(&ask(&format!("GET /\n{line}")), 3), 3, "{selector}: {line}");
        }
    };
    check("cookie.sid", &["Cookie: a=b,sid=x", "Cookie: a=\"x; sid", "Cookie: s%69d=x"], &["Cookie: a=b; c=d", "A: b"]);
    check(
        "basic.user",
        &["Authorization: Basic !", "Authorization: basic  YWxpY2U6eA=="],
        &["Authorization: Bearer x"],
    );
    check("bearer", &["Authorization: Bearerx", "Authorization: Bearer"], &["Authorization: Basic YWxpY2U6eA=="]);
}

#[test]
fn a_decoy_in_front_of_a_body_not_seen_whole_buys_no_attempts() {
    let mut world = world();
    world.route("POST /login", vec![limit("user", "form.user", "2/hour")]);
    let decoys =
        ["one", "two", "three", "four"].map(|decoy| form("/login", &format!("user={decoy}&pad=xx")).cut_short());
    assert_eq!(decoys.iter().filter(|decoy| world.passes(decoy)).count(), 2);
    // A request that is read whole is not charged for others.
    assert!(world.passes(&form("/login", "user=alice")));
}
