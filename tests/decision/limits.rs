//! Several limits on one request: all or none are charged; several keys, shadow limits, attempts, slots.

use std::time::Duration;

use portcullis::rules::decision::DenialCause;
use portcullis::rules::limit::{Count, Detail, Limit};

use crate::support::{ask, concurrent, form, limit, world};

#[test]
fn a_denied_request_is_charged_to_no_limit() {
    let mut world = world();
    world.everywhere(limit("wide", "client_ip", "3/hour"));
    world.route("/login", vec![limit("narrow", "client_ip", "1/hour")]);
    assert_eq!(world.passing(&ask("GET /login"), 5), 1);
    // One of three was used, by the request that passed.
    assert_eq!(world.passing(&ask("GET /"), 5), 2);
}

#[test]
fn a_limit_that_counts_attempts_is_charged_for_denied_requests_too() {
    let mut world = world();
    world.everywhere(Limit { count: Count::Attempts, ..limit("hammer", "client_ip", "3/hour") });
    world.route("/login", vec![limit("narrow", "client_ip", "1/hour")]);
    assert_eq!(world.passing(&ask("GET /login"), 3), 1);
    assert_eq!(world.decide(&ask("GET /")).denied_by, ["hammer"]);
}

#[test]
fn a_limit_in_two_places_is_charged_once() {
    let mut world = world();
    world.everywhere(limit("pace", "client_ip", "2/hour"));
    world.route("/login", vec![limit("pace", "client_ip", "2/hour")]);
    assert_eq!(world.decide(&ask("GET /login")).charges, 1);
    assert!(world.passes(&ask("GET /login")));
    assert!(!world.passes(&ask("GET /")));
}

#[test]
fn every_denying_limit_is_named_and_the_longest_wait_decides() {
    let mut world = world();
    world.everywhere(limit("minute", "client_ip", "1/minute"));
    world.route("/login", vec![limit("hour", "client_ip", "1/hour"), limit("loose", "client_ip", "9/second")]);
    assert!(world.passes(&ask("GET /login")));
    world.clock.advance(Duration::from_secs(10));
    let told = world.decide(&ask("GET /login"));
    assert_eq!(told.denied_by, ["minute", "hour"]);
    assert_eq!(told.retry_after, Some(Duration::from_secs(3590)));
    assert_eq!(told.decided_by.as_deref(), Some("hour"));
    assert_eq!(told.reports.iter().map(|report| report.applied.is_some()).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn a_wait_that_may_not_be_shown_is_not() {
    let mut world = world();
    world.everywhere(Limit { headers: Detail::None, ..limit("hidden", "", "1/hour") });
    world.everywhere(Limit { headers: Detail::RetryAfter, ..limit("shown", "", "1/minute") });
    assert!(world.passes(&ask("GET /")));
    let told = world.decide(&ask("GET /"));
    assert_eq!(told.retry_after, Some(Duration::from_secs(60)));
    assert_eq!(told.decided_by.as_deref(), Some("hidden"));
    world.clock.advance(Duration::from_secs(61));
    assert_eq!(world.decide(&ask("GET /")).retry_after, None);
}

#[test]
fn a_field_sent_several_times_counts_against_every_value() {
    let mut world = world();
    world.route("POST /login", vec![limit("user", "param.username", "2/hour")]);
    assert!(world.passes(&form("/login", "username=decoy&username=alice")));
    assert!(world.passes(&form("/login?username=alice", "username=other")));
    assert!(!world.passes(&form("/login", "username=Alice")));
    assert!(!world.passes(&form("/login", "username=fresh&username=alice")));
    assert!(world.passes(&form("/login", "username=fresh")));
}

#[test]
fn a_name_that_is_no_text_counts_as_empty_whatever_the_query_says() {
    for name in [r#"["alice"]"#, r#"{"$eq":"alice"}"#, "null"] {
        let mut world = world();
        world.route("POST /login", vec![limit("user", "param.username", "2/hour")]);
        let guess = |number: usize| {
            let head = format!("POST /login?username=decoy{number}\nContent-Type: application/json");
            ask(&head).body(&format!(r#"{{"username":{name}}}"#))
        };
        let passed = (0..5).filter(|number| world.passes(&guess(*number)));
        assert_eq!(passed.count(), 2, "{name}");
    }
}

#[test]
fn the_key_with_the_least_left_is_the_one_reported() {
    let mut world = world();
    world.everywhere(limit("user", "query.u", "5/hour"));
    for _ in 0..3 {
        assert!(world.passes(&ask("GET /?u=busy")));
    }
    let told = world.decide(&ask("GET /?u=new&u=busy"));
    assert_eq!(told.charges, 2);
    assert_eq!(told.reports.len(), 1);
    assert_eq!(told.closest.map(|rate| rate.remaining), Some(1));
}

#[test]
fn nine_values_of_a_field_are_refused_and_charged_nowhere() {
    let mut world = world();
    world.everywhere(limit("all", "", "1/hour"));
    world.everywhere(limit("user", "query.u", "5/hour"));
    let nine = format!("GET /?{}", (0..9).map(|i| format!("u={i}")).collect::<Vec<_>>().join("&"));
    let told = world.decide(&ask(&nine));
    assert_eq!((told.cause, told.charges), (Some(DenialCause::TooManyValues), 0));
    let eight = format!("GET /?{}", (0..8).map(|i| format!("u={i}")).collect::<Vec<_>>().join("&"));
    assert!(world.passes(&ask(&eight)));
}

#[test]
fn a_shadow_is_reported_and_never_applied() {
    let mut world = world();
    world.everywhere(Limit { shadow: true, ..limit("trial", "client_ip", "1/hour") });
    world.everywhere(limit("real", "client_ip", "3/hour"));
    assert!(world.passes(&ask("GET /")));
    let told = world.decide(&ask("GET /"));
    assert!(told.passes);
    assert_eq!(
        told.reports.iter().map(|report| (report.shadow, report.applied.is_some())).collect::<Vec<_>>(),
        [(true, true), (false, false)]
    );
    // What the shadow would have denied was charged to the limit in force.
    assert!(world.passes(&ask("GET /")));
    assert!(!world.passes(&ask("GET /")));
}

#[test]
fn a_shadow_never_refuses_a_strange_request() {
    let mut world = world();
    world.everywhere(Limit { shadow: true, ..limit("trial", "query.u", "1/hour") });
    let nine = format!("GET /?{}", (0..9).map(|i| format!("u={i}")).collect::<Vec<_>>().join("&"));
    let told = world.decide(&ask(&nine));
    assert!(told.passes && told.reports[0].applied.is_some());
}

#[test]
fn a_slot_in_flight_is_held_until_it_is_given_back() {
    let mut world = world();
    world.everywhere(concurrent("flight", "client_ip", 2));
    let first = world.decide(&ask("GET /"));
    let second = world.decide(&ask("GET /"));
    assert_eq!((first.slots.len(), second.slots.len()), (1, 1));
    let third = world.decide(&ask("GET /"));
    assert_eq!((third.passes, third.slots.len()), (false, 0));
    assert_eq!(third.retry_after, Some(Duration::from_secs(1)));
    world.settle(&first.slots);
    assert!(world.passes(&ask("GET /")));
}

#[test]
fn a_denied_request_holds_no_slot() {
    let mut world = world();
    world.everywhere(concurrent("flight", "client_ip", 1));
    world.everywhere(Limit { shadow: true, ..concurrent("trial", "client_ip", 1) });
    world.everywhere(limit("pace", "", "1/hour"));
    assert!(world.passes(&ask("GET /")));
    let told = world.decide(&ask("GET /"));
    assert_eq!(told.denied_by, ["pace"]);
    world.settle(&told.slots);
    world.clock.advance(Duration::from_secs(3601));
    let told = world.decide(&ask("GET /"));
    assert!(told.passes);
    assert_eq!(told.slots.len(), 2);
    assert!(told.reports.iter().all(|report| report.applied.is_none()));
}

#[test]
fn a_route_key_gives_each_route_a_budget() {
    let mut world = world();
    world.everywhere(limit("per-route", "client_ip route", "1/hour"));
    world.route("/a", vec![]);
    world.route("/b", vec![]);
    assert_eq!(world.passing(&ask("GET /a"), 2), 1);
    assert_eq!(world.passing(&ask("GET /b"), 2), 1);
    assert_eq!(world.passing(&ask("GET /c"), 2), 1);
    assert_eq!(world.passing(&ask("GET /d"), 2), 0);
}

#[test]
fn a_captured_segment_is_a_key_in_every_spelling() {
    let mut world = world();
    world.route("/users/{id}", vec![limit("user", "path.id", "1/hour")]);
    assert!(world.passes(&ask("GET /users/alice")));
    assert!(!world.passes(&ask("GET /Users//ALIC%45/")));
    assert!(world.passes(&ask("GET /users/bob")));
}
