//! An operator's query for one key of one limit: the same key as a request has, or a message that says what is unclear.

use std::borrow::Cow;
use std::num::NonZeroU32;

use portcullis::rules::decision::operator::{InvalidLimitQuery, LimitQuery};
use portcullis::rules::key::{Hashers, Key, KeyHasher, KeyPart, Spelling};
use portcullis::rules::limit::{Limit, Rule};

use crate::support::{World, ask, limit, world};

#[track_caller]
fn by_hand(world: &World, name: &str, values: &[(&str, &str)], cost: u32) -> Result<LimitQuery, InvalidLimitQuery> {
    let values: Vec<_> = values.iter().map(|(name, value)| (Cow::Borrowed(*name), Cow::Borrowed(*value))).collect();
    LimitQuery::new(
        &world.policy,
        name,
        &values,
        NonZeroU32::new(cost),
        &Hashers { counted: KeyHasher::new([1; 16]), shown: KeyHasher::new([2; 16]) },
    )
}

fn example() -> World {
    let mut world = world();
    world.everywhere(limit("pace", "client_ip", "2/minute"));
    world.everywhere(limit("account", "client_ip query.user", "10/minute"));
    world.everywhere(limit("all", "", "100/minute"));
    world
}

#[test]
fn the_key_is_that_of_the_request() {
    let world = example();
    let told = world.decide(&ask("GET /?user=alice").from("198.51.100.7"));
    let key = |name, values: &[_]| by_hand(&world, name, values, 0).expect("clear").keys[0].key;
    assert_eq!(
        told.charged,
        [
            key("pace", &[("client_ip", "198.51.100.7")]),
            key("account", &[("query.user", "alice"), ("client_ip", "::ffff:198.51.100.7")]),
            key("all", &[]),
        ]
    );
}

#[test]
fn what_is_unclear_is_said_with_what_the_key_needs_and_without_any_value() {
    let world = example();
    let said = |name, values: &[_], cost| by_hand(&world, name, values, cost).expect_err("unclear").to_string();
    assert_eq!(said("pase", &[], 0), "there is no limit of that name; did you mean `pace`?");
    assert_eq!(said("login", &[], 0), "there is no limit of that name");
    assert_eq!(said("pace", &[], 0), "no value for `client_ip`; its key is `client_ip`");
    assert_eq!(
        said("account", &[("client_ip", "10.0.0.1"), ("query.usr", "x")], 0),
        "the key of this limit has no such part; its key is `client_ip` and `query.user`; did you mean `query.user`?"
    );
    assert_eq!(
        said("account", &[("client_ip", "10.0.0.1")], 0),
        "no value for `query.user`; its key is `client_ip` and `query.user`"
    );
    assert_eq!(
        said("all", &[("client_ip", "10.0.0.1")], 0),
        "the key of this limit has no such part; its key has no parts, and takes no value"
    );
    let twice = [("client_ip", "10.0.0.1"), ("client_ip", "10.0.0.2")];
    assert_eq!(said("pace", &twice, 0), "several values for `client_ip`: a key has one of each part");
    assert!(!said("pace", &[("client_ip", "secret")], 0).contains("secret"));
    assert_eq!(said("pace", &[("client_ip", "10.0.0.1")], 3), "a cost of 3 never passes a rate of 2/minute");
}

#[test]
fn a_cost_replaces_that_of_the_limit() {
    let asked = by_hand(&example(), "pace", &[("client_ip", "10.0.0.1")], 2).expect("clear");
    assert!(matches!(asked.batch().charges[0].rule, Rule::Rates { cost, .. } if cost.get() == 2));
}

#[test]
fn one_of_the_values_that_are_told_apart_may_stand_beside_the_key() {
    let mut world = world();
    world.everywhere(Limit {
        rule: Rule::Distinct("3/hour".parse().expect("a rate")),
        distinct: Some(KeyPart { selector: "param.user".parse().expect("a selector"), spelling: Spelling::Usual }),
        ..limit("guessing", "client_ip", "3/hour")
    });
    let items = |values: &[_], cost| {
        let asked = by_hand(&world, "guessing", values, cost).expect("clear");
        asked.batch().charges[0].items.to_vec()
    };
    let of_request = |value: &[u8]| {
        let mut key = Key::default();
        key.push(value);
        vec![KeyHasher::new([1; 16]).item(&key)]
    };
    let (from, alice) = (("client_ip", "198.51.100.7"), ("param.user", " ALICE"));
    assert_eq!(items(&[from, alice], 0), of_request(b"alice"));
    assert_eq!(items(&[alice, from], 1), of_request(b"alice"), "each costs 1");
    assert_eq!(items(&[from], 0), of_request(b""), "as of a request that lacks it");
    let said = |values: &[_], cost| by_hand(&world, "guessing", values, cost).expect_err("unclear");
    assert_eq!(said(&[from], 2), InvalidLimitQuery::NoCost);
    assert_eq!(said(&[from, alice, alice], 0), InvalidLimitQuery::Repeated("param.user".to_owned()));
    assert!(matches!(said(&[alice], 0), InvalidLimitQuery::Missing { .. }));
}
