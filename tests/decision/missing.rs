//! The key of a request that lacks a part of it.

use std::time::Duration;

use portcullis::limit::Count;
use portcullis::limit::Limit;
use portcullis::limit::Missing;

use crate::support::ask;
use crate::support::form;
use crate::support::limit;
use crate::support::world;

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
    assert_eq!(login(Missing::Skip).passing(&distant(), 3), 3);
    assert_eq!(login(Missing::Deny).passing(&distant(), 3), 0);
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
