//! The explanation of a request that an operator gets.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use portcullis::rules::client::Prefix;
use portcullis::rules::decision::explain::AccessExplanation;
use portcullis::rules::key::{KeyPart, KeySpec, Spelling};
use portcullis::rules::limit::{Action, Count, Ladder, Limit, Missing, ResetOutcome, Rule, Then};
use portcullis::rules::outcome::{Matchers, OutcomeRule};
use portcullis::rules::route::{KnownBy, KnownClients};
use portcullis::words::glob::Glob;

use crate::support::{World, ask, concurrent, form, limit, world};

fn login() -> World {
    let mut world = world();
    let office = world.list("office", &["198.51.100.0/24"]);
    world.everywhere(Limit { unless: vec![office], ..limit("per-client", "client_ip", "100/second; 2000/minute") });
    world.route("/admin/*", vec![]).only = Some(vec![office]);
    world.route("POST /login", vec![limit("login", "client_ip param.username", "10 per 3 minutes")]);
    world.route("/*", vec![Limit { shadow: true, ..concurrent("flight", "", 20) }]);
    world
}

#[test]
fn a_request_is_told_from_client_to_key() {
    let told = login().explain(&form("/Login//", "username=Alice&username=bob"));
    assert_eq!(
        told.to_string(),
        "\
request   POST /Login on www.example.com
client    192.0.2.1
tried     /admin/*: the path is not /admin/*
tried     POST /login: matches
tried     /*: not tried, an earlier one matches
route     POST /login
upstream  upstream-2
body      read before the decision
limit     per-client: 100/second; 2000/minute, sliding-window-log
  key     client_ip = \"192.0.2.1\"
limit     login: 10 per 3 minutes, sliding-window-log: counted under 2 keys
  key     client_ip = \"192.0.2.1\"
  key     param.username = \"alice\", \"bob\"
decision  as the counters stand
"
    );
}

#[test]
fn a_path_that_may_be_read_otherwise_is_told_in_every_reading() {
    let told = login().explain(&ask("POST /login.php/x")).to_string();
    assert!(told.contains("\nread as   \"/login.php\", \"/x\", too\n"), "{told}");
    let told = login().explain(&ask("POST /index.php/login"));
    assert_eq!(told.readings.as_deref(), Some(&["/index.php".to_owned(), "/".to_owned(), "/login".to_owned()][..]));
    assert!(
        told.to_string().contains("tried     POST /login: may be read as matching, so its rules hold too\n"),
        "{told}"
    );
    let told = login().explain(&ask(&format!("POST {}", "/a.php".repeat(500))));
    assert_eq!(told.readings, None);
    assert!(told.to_string().contains("\nread as   any path"), "{told}");
    assert!(told.denied.is_some(), "it may be /admin, where only the office may go: {told}");
}

#[test]
fn a_suffix_that_no_reading_takes_away_is_named() {
    let told = login().explain(&ask("POST /Login.json")).to_string();
    let words = "tried     POST /login: the path is not /login; where the application takes /Login.json for it, write that path \
        in `match` as well\n";
    assert!(told.contains(words), "{told}");
    let told = login().explain(&ask("POST /logins")).to_string();
    assert!(told.contains("tried     POST /login: the path is not /login\n"), "{told}");
}

#[test]
fn an_override_is_told_to_bring_its_rules() {
    let told = login().explain(&ask("GET /login\nX-HTTP-Method-Override: POST").from("198.51.100.7"));
    assert_eq!(
        told.to_string(),
        "\
request   GET /login on www.example.com
client    198.51.100.7
list      office (of client_ip): in it
tried     /admin/*: the path is not /admin/*
tried     POST /login: may be read as matching, so its rules hold too
tried     /*: matches
route     /*
upstream  upstream-3
body      read before the decision
limit     per-client: 100/second; 2000/minute, sliding-window-log: does not hold for members of office
  key     client_ip = \"198.51.100.7\"
limit     login: 10 per 3 minutes, sliding-window-log
  key     client_ip = \"198.51.100.7\"
  key     param.username = (missing)
limit     flight: 20 in flight, shadow
  key     one for all
decision  as the counters stand
"
    );
}

#[test]
fn a_refusal_is_told_with_its_reason() {
    let told = login().explain(&ask("GET /admin"));
    assert_eq!(told.denied.as_deref(), Some("the client is on none of the lists in `only`"));
    assert!(told.to_string().ends_with("decision  denied: the client is on none of the lists in `only`\n"), "{told}");
    let mut world = world();
    let abusers = world.list("abusers", &["192.0.2.0/24"]);
    world.policy.access.deny = vec![abusers];
    let told = world.explain(&ask("GET /"));
    assert_eq!(told.access, AccessExplanation::Denied("abusers".into()));
    assert!(told.to_string().ends_with("decision  denied: the list abusers is denied\n"), "{told}");
}

#[test]
fn a_missing_part_is_told_with_what_the_limit_does_about_it() {
    let mut world = world();
    world.everywhere(Limit { missing: Missing::Skip, ..limit("skips", "bearer", "1/hour") });
    world.everywhere(Limit { missing: Missing::Deny, ..limit("denies", "bearer", "1/hour") });
    let told = world.explain(&ask("GET /")).to_string();
    assert!(told.contains("skips: 1/hour, sliding-window-log: skipped, a part of its key is missing\n"), "{told}");
    assert!(told.contains("denies: 1/hour, sliding-window-log: denied, a part of its key is missing\n"), "{told}");
    assert!(told.ends_with("decision  denied by a limit above\n"), "{told}");
}

#[test]
fn programs_get_the_same_as_json() {
    let told = serde_json::to_value(login().explain(&form("/login", "username=alice"))).unwrap();
    assert_eq!(told["route"], "POST /login");
    assert_eq!(told["client"], "192.0.2.1");
    assert_eq!(told["routes"][0]["matches"], "no");
    assert_eq!(told["routes"][2]["matches"], "not_tried");
    assert_eq!(told["limits"][1]["key"][1]["values"][0], "alice");
    assert_eq!(told["limits"][1]["outcome"]["counted"], 1);
    assert_eq!(told["access"], "ordinary");
}

#[test]
fn answers_and_what_they_bring_are_told() {
    let failure = Matchers { status: "401".parse().ok(), cookies: vec![Glob::cased("retry")], ..Matchers::default() };
    let mut world = world();
    world.everywhere(Limit { count: Count::Successes, ..limit("logins", "client_ip", "5/minute") });
    let lengths = [900, 3_600].map(Duration::from_secs).to_vec();
    let ban = Action::Ban(Ladder::new(lengths).expect("two lengths"));
    let guessing = Limit {
        rule: Rule::Distinct("20/hour".parse().expect("a rate")),
        distinct: Some(part("param.username")),
        then: Then { action: ban, notify: Vec::new() },
        ..limit("guessing", "client_ip", "20/hour")
    };
    let failures = Limit {
        count: Count::Failures,
        reset_on: Some(ResetOutcome::Success),
        unless_known: true,
        then: Then { action: Action::Delay(Duration::from_secs(20)), notify: Vec::new() },
        ..limit("failures", "", "10/minute")
    };
    let route = world.route("POST /login", vec![guessing, failures]);
    route.outcome = Some(Arc::new(OutcomeRule::new(None, Some(failure), None)));
    route.known_clients = Some(KnownClients {
        notify: Vec::new(),
        of: KeySpec { parts: vec![part("param.username")], ..KeySpec::default() },
        remember: NonZeroU32::MIN,
        keep: Duration::from_secs(86_400),
        by: KnownBy::Cookie,
        prefix: Prefix::default(),
    });
    let told = world.explain(&form("/login", "username=alice")).to_string();
    let (_, told) = told.split_once("body      read before the decision\n").expect("the body is read");
    assert_eq!(
        told,
        "\
outcome   failure with status 401, cookie retry; otherwise success
known     for 1d by cookie after a success, as param.username = \"alice\"
limit     logins: 5/minute, sliding-window-log, successes count
  key     client_ip = \"192.0.2.1\"
limit     guessing: 20/hour, different values, then ban 15m, then 1h
  key     client_ip = \"192.0.2.1\"
  counts  different param.username = \"alice\"
limit     failures: 10/minute, sliding-window-log, failures count, a success resets them, not for known clients, then delay 20s
  key     one for all
decision  as the counters stand
"
    );
    let elsewhere = world.explain(&ask("GET /")).to_string();
    assert!(elsewhere.contains("logins: 5/minute, sliding-window-log, successes count: not counted"), "{elsewhere}");
    assert!(elsewhere.ends_with("decision  passes\n"), "{elsewhere}");
}

fn part(selector: &str) -> KeyPart {
    KeyPart { selector: selector.parse().expect("a selector"), spelling: Spelling::Usual }
}
