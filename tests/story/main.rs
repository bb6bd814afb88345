//! A night on call: attacks of each kind among ordinary users, on two gateways of one Redis. Each is named within ten seconds, the
//! proposed ban ends it and meets no user, and a sign-in of the attacker is told at once.

mod night;

#[path = "../support/mod.rs"]
pub mod support;

use std::time::Duration;

use serde_json::Value;

use crate::night::{Attempt, Night};
use crate::support::{eventually, throughout};

/// From its beginning until an attack is named.
const NAMED_WITHIN: Duration = Duration::from_secs(10);

/// From the sign-in of an attacker until it is an event.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// Names it, bans what is proposed, and looks at who is kept out.
#[track_caller]
fn is_named_and_ended(
    kind: &str,
    route: &str,
    per_second: u32,
    sources: &[String],
    attempt: impl Fn(u32) -> Attempt + Send + Sync,
) {
    let night = Night::begin();
    let users = night.users();
    let attack = night.attack(per_second, sources, &attempt);
    let named = night.named_within(NAMED_WITHIN, |attack| {
        let clients = attack["clients"].as_u64().unwrap();
        attack["kind"] == kind && attack["route"] == route && clients >= sources.len() as u64
    });
    assert!(named["ban"].is_string() && !named["over"].as_bool().unwrap(), "{named}");
    let held: u64 =
        named["networks"].as_array().unwrap().iter().map(|network| network["requests"].as_u64().unwrap()).sum();
    assert!(held * 10 >= named["requests"].as_u64().unwrap() * 9, "{named}");
    assert_eq!(named["agents"][0]["agent"], "Hydra", "{named}");
    // Both gateways say the same of it, on the page's API and in the terminal.
    for gateway in 0..2 {
        night.verdicts_are_equal(gateway);
        eventually("the other gateway names it", || night.attacks(gateway).iter().any(|it| it["kind"] == kind));
    }
    night.ban(&night.attacks(0)[0]);
    let (kept_out, through) = attack.measured_for(Duration::from_secs(3));
    assert!(kept_out * 100 >= (kept_out + through) * 95, "{kept_out} kept out, {through} let through");
    assert_eq!(night.attacks(0)[0]["would_hit"], 0);
    attack.end();
    assert_eq!(users.end(), 0, "a user was banned");
}

/// `127.HIGH.1.1` and so on, `count` addresses in networks of 100 each.
fn addresses(high: u8, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("127.{high}.{}.{}", 1 + number / 100, 1 + number % 100)).collect()
}

#[test]
fn guessing_is_named_and_ended() {
    is_named_and_ended("guessing", "login", 20, &addresses(20, 1), |number| {
        Attempt::sign_in("alice", &format!("guess-{number}"))
    });
}

#[test]
fn stuffing_is_named_and_ended() {
    is_named_and_ended("stuffing", "login", 60, &addresses(21, 6), |number| {
        Attempt::sign_in(&format!("stolen-{number}"), "stolen")
    });
}

#[test]
fn spraying_is_named_and_ended() {
    is_named_and_ended("spraying", "login", 100, &addresses(22, 360), |number| {
        Attempt::sign_in(&format!("sprayed-{}", number % 2000), "Winter2026")
    });
}

#[test]
fn a_flood_is_named_and_ended() {
    is_named_and_ended("flood", "search", 200, &addresses(23, 20), |number| {
        Attempt::get(&format!("/search?q={number}"))
    });
}

#[test]
fn a_sign_in_of_the_attacker_is_told_whichever_gateway_saw_the_failures() {
    let night = Night::begin();
    // Two failures on one gateway, four on the other: neither has enough alone.
    for (gateway, failures) in [(0, 2), (1, 4)] {
        for number in 0..failures {
            let source = format!("127.30.{gateway}.{}", number + 1);
            assert_eq!(night.sign_in(gateway, &source, "bob", &format!("guess-{number}")).status, 401);
        }
    }
    let answer = night.sign_in(0, "127.30.9.9", "bob", "right");
    assert_eq!(answer.status, 302);
    let event = night.event_within(TOLD_WITHIN, 0, "bob");
    assert_eq!((&event["client"], &event["failures"], &event["clients"]), (&"127.30.9.9".into(), &6.into(), &6.into()));
    assert_eq!(event["route"], "login");
    assert_eq!(event["request_id"].as_str(), answer.header("x-request-id"));
    // The other gateway names it as well, without the name.
    let masked = night.event_within(TOLD_WITHIN * 2, 1, "b***");
    assert_eq!((&masked["client"], &masked["failures"]), (&event["client"], &event["failures"]));
    let said = night.gateways[0].stderr();
    let line = said.iter().find(|line| line.contains("signed in after failures")).expect("a line of the log");
    assert!(line.contains("WARN") && line.contains("6 failures from 6 clients") && !line.contains("bob"), "{line}");
    assert_eq!(night.metric(0, "portcullis_signed_in_after_failures_total{route=\"login\"}"), 1);
    // The webhook of the route hears of it once, without the name too.
    let messages = night.messages();
    let [message] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!((&message["event"], &message["failures"]), (&"signed_in_after_failures".into(), &6.into()));
    let text = message["text"].as_str().expect("a sentence");
    assert!(text.contains("b***") && text.contains("after 6 failures from 6 clients"), "{text}");
    assert!(!message.to_string().contains("bob"), "{message}");
    // Whoever mistypes now and then is no event.
    for password in ["wrong", "wronger", "right"] {
        night.sign_in(0, "127.31.0.1", "carol", password);
    }
    throughout(TOLD_WITHIN, || assert!(night.events(0).iter().all(|event| event["account"] != "carol")));
}

#[test]
fn clients_and_accounts_are_ranked_by_failures() {
    let night = Night::begin();
    for number in 0..4 {
        night.sign_in(number % 2, "127.32.0.1", "dave", "wrong");
    }
    night.sign_in(0, "127.32.0.2", "erin", "wrong");
    eventually("both gateways count failures", || {
        let busiest = |target: &str| -> Vec<(Value, Value)> {
            let top = night.api(0, target);
            let entries = top.as_array().expect("a list").iter();
            entries
                .map(|it| (it["key"].as_object().unwrap().values().next().unwrap().clone(), it["failed"].clone()))
                .collect()
        };
        busiest("top?by=failures") == [("127.32.0.1".into(), 4.into()), ("127.32.0.2".into(), 1.into())]
            && busiest("top?by=failures&limit=guesses") == [("dave".into(), 4.into()), ("erin".into(), 1.into())]
    });
}
