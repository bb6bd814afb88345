//! What the application's answer does to the counts.

use std::sync::Arc;
use std::time::Duration;

use portcullis::rules::client::Prefix;
use portcullis::rules::decision::Settlement;
use portcullis::rules::key::{KeyPart, KeySpec, Spelling};
use portcullis::rules::limit::{Count, Limit, ResetOutcome};
use portcullis::rules::outcome::{Outcome, OutcomeRule};
use portcullis::rules::route::{KnownBy, KnownClients};

use crate::support::{Ask, World, ask, form, limit, world};

/// A route with an outcome, whose clients become known for a user name.
fn login(limits: Vec<Limit>) -> World {
    login_by("query.user", limits)
}

/// The same with the name elsewhere.
fn login_by(name: &str, limits: Vec<Limit>) -> World {
    let mut world = world();
    let route = world.route("/login", limits);
    route.outcome = Some(Arc::new(OutcomeRule::new(None, None, None)));
    route.known_clients = Some(KnownClients {
        notify: Vec::new(),
        of: KeySpec {
            parts: vec![KeyPart { selector: name.parse().unwrap(), spelling: Spelling::Usual }],
            ..KeySpec::default()
        },
        remember: 5.try_into().unwrap(),
        keep: Duration::from_secs(86_400),
        by: KnownBy::Address,
        prefix: Prefix::default(),
    });
    world
}

fn guess(users: &[&str]) -> Ask {
    let query: Vec<String> = users.iter().map(|user| format!("user={user}")).collect();
    ask(&format!("GET /login?{}", query.join("&")))
}

/// The words for what the store is told.
fn told(world: &World, ask: &Ask, outcome: Outcome) -> Vec<&'static str> {
    let pending = world.decide(ask).pending.unwrap();
    let said = |settlement: &Settlement<'_>| match settlement {
        Settlement::TakeBack { .. } => Some("take back"),
        Settlement::Charge { .. } => Some("charge"),
        Settlement::Reset(_) => Some("forget"),
        Settlement::Remember { .. } => Some("remember"),
        _ => None,
    };
    pending.settlements(&world.policy, Some(outcome)).iter().filter_map(said).collect()
}

#[test]
fn what_was_reserved_is_given_back_when_the_answer_is_another() {
    let failures = Limit { count: Count::Failures, ..limit("failures", "query.user", "9/hour") };
    let successes = Limit { count: Count::Successes, ..limit("successes", "query.user", "9/hour") };
    for (counted, outcome, expected) in [
        (&failures, Outcome::Failure, vec![]),
        (&failures, Outcome::Neither, vec!["take back"]),
        (&successes, Outcome::Failure, vec!["take back"]),
        (&successes, Outcome::Success, vec!["remember"]),
        (&failures, Outcome::Success, vec!["take back", "remember"]),
    ] {
        assert_eq!(told(&login(vec![counted.clone()]), &guess(&["alice"]), outcome), expected);
    }
}

#[test]
fn a_success_clears_its_own_key_and_only_when_it_named_no_other() {
    let limit = Limit { reset_on: Some(ResetOutcome::Success), ..limit("pace", "query.user", "9/hour") };
    let world = login(vec![limit]);
    assert_eq!(told(&world, &guess(&["alice"]), Outcome::Success), ["take back", "forget", "remember"]);
    assert_eq!(told(&world, &guess(&["alice", "mallory"]), Outcome::Success), [""; 0]);
    assert_eq!(told(&world, &guess(&["alice"]), Outcome::Failure), [""; 0]);
}

#[test]
fn a_client_becomes_known_only_for_one_name_that_it_named() {
    let world = login(vec![limit("pace", "client_ip", "9/hour")]);
    assert_eq!(told(&world, &guess(&["alice"]), Outcome::Success), ["remember"]);
    assert_eq!(told(&world, &guess(&["alice"]), Outcome::Failure), [""; 0]);
    assert_eq!(told(&world, &guess(&["alice", "mallory"]), Outcome::Success), [""; 0]);
    assert_eq!(told(&world, &guess(&[""]), Outcome::Success), [""; 0]);
    assert_eq!(told(&world, &ask("GET /login"), Outcome::Success), [""; 0]);
}

#[test]
fn a_name_in_the_query_earns_nothing_beside_fields_in_the_body() {
    let limit = Limit { reset_on: Some(ResetOutcome::Success), ..limit("pace", "param.user", "9/hour") };
    let world = login_by("param.user", vec![limit]);
    assert_eq!(told(&world, &form("/login", "user=alice"), Outcome::Success), ["take back", "forget", "remember"]);
    assert_eq!(told(&world, &form("/login?user=alice", ""), Outcome::Success), ["take back", "forget", "remember"]);
    let text = ask("POST /login?user=alice\nContent-Type: text/plain").body("x");
    assert_eq!(told(&world, &text, Outcome::Success), ["take back", "forget", "remember"]);
    for (target, body) in [
        ("/login?user=alice", "email=mallory"),
        ("/login?user=alice", r#"{"email":"mallory"}"#),
        ("/login?user=alice", r#"{"user":["mallory"]}"#),
        ("/login?user=alice", "user=alice"),
    ] {
        assert_eq!(told(&world, &form(target, body), Outcome::Success), [""; 0], "{target} {body}");
    }
}

#[test]
fn a_success_is_credited_only_where_the_body_was_understood() {
    let credited = |name: &str| {
        login_by(name, vec![Limit { reset_on: Some(ResetOutcome::Success), ..limit("pace", name, "9/hour") }])
    };
    let world = credited("param.user");
    let json = |text: &str| ask("POST /login\nContent-Type: application/json").body(text);
    let part = |headers: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"user\"{headers}\r\n\r\n{value}\r\n--b--\r\n")
    };
    let parts = |text: &str| ask("POST /login\nContent-Type: multipart/form-data; boundary=b").body(text);
    let file =
        "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x\"\r\nContent-Type: text/plain\r\n\r\n.\r\n";
    for plain in [
        json(r#"{"user":"alice"}"#),
        ask("POST /login\nContent-Type: application/x-www-form-urlencoded; charset=UTF-8")
            .body("password=x&user=alice"),
        parts(&format!("{file}{}", part("", "alice"))),
    ] {
        assert_eq!(told(&world, &plain, Outcome::Success), ["take back", "forget", "remember"], "{plain:?}");
    }
    for odd in [
        form("/login", "user=alice&x[user]=mallory"),
        form("/login", "user=alice&a=1;b"),
        form("/login", "user=alice").cut_short(),
        form("/login", "user[]=alice"),
        form("/login", "USER=alice"),
        form("/login", "+user=alice"),
        form("/login", "user%00=alice"),
        form("/login", "a=1;user=alice"),
        form("/login", &format!("{}user=alice", "a&".repeat(1000))),
        form("/login", r#"{"user":"alice"}"#),
        form("/login?User=alice", "x=1"),
        form("/login?a=1;b=2", "user=alice"),
        parts(&part("; filename=\"x\"", "alice")),
        json(r#"{"User":"alice"}"#),
        json(r#"{"user":"alice","USER":"mallory"}"#),
        json(r#"{"user":"alice"} x"#),
        json(&format!("{{{}\"user\":\"mallory\"}}", r#""user":"alice","#.repeat(64))),
        ask("POST /login\nContent-Type: text/plain").body(r#"{"user":"alice"}"#),
        ask("POST /login\nContent-Type: text/plain").body("user=alice"),
    ] {
        assert_eq!(told(&world, &odd, Outcome::Success), [""; 0], "{odd:?}");
    }
    let two_types = ask("POST /login\nContent-Type: application/x-www-form-urlencoded, text/plain").body("user=alice");
    assert_eq!(told(&credited("form.user"), &two_types, Outcome::Success), [""; 0]);
}

#[test]
fn without_an_outcome_nothing_is_ever_a_failure() {
    let mut world = world();
    world.route("/login", vec![Limit { count: Count::Failures, ..limit("failures", "", "1/hour") }]);
    assert_eq!(world.passing(&ask("GET /login"), 5), 5);
    assert!(world.decide(&ask("GET /login")).pending.is_none());
}
