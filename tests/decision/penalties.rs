//! Penalties beyond a limit: delay, tarpit, ban, challenge.

use std::time::Duration;

use portcullis::rules::decision::Penalty;
use portcullis::rules::limit::{Action, Ladder, Limit, Then};

use crate::support::{World, ask, limit, world};

const MINUTE: Duration = Duration::from_secs(60);

fn then(action: Action) -> Then {
    Then { action, notify: Vec::new() }
}

fn ban() -> Action {
    Action::Ban(Ladder::new(vec![MINUTE]).unwrap())
}

/// A world with one route and these limits of one request an hour, each already used up.
fn exhausted(actions: Vec<(&str, Action)>) -> World {
    let mut world = world();
    let limits = actions.into_iter().map(|(name, action)| Limit { then: then(action), ..limit(name, "", "1/hour") });
    world.route("/login", limits.collect());
    assert!(world.passes(&ask("GET /login")));
    world
}

#[test]
fn the_severest_of_those_that_bind_decides() {
    let all = [
        ("delayed", Action::Delay(MINUTE)),
        ("challenged", Action::Challenge),
        ("held", Action::Tarpit(MINUTE)),
        ("denied", Action::Deny(None)),
        ("banned", ban()),
    ];
    for severest in 1..all.len() {
        let world = exhausted(all[..=severest].to_vec());
        let told = world.decide(&ask("GET /login"));
        assert_eq!(told.decided_by.as_deref(), Some(all[severest].0));
        assert_eq!(told.denied_by.len(), severest, "a delay denies nothing");
    }
}

#[test]
fn a_delay_lets_pass_and_the_longest_one_counts() {
    let world = exhausted(vec![("short", Action::Delay(MINUTE)), ("long", Action::Delay(2 * MINUTE))]);
    let told = world.decide(&ask("GET /login"));
    assert!(told.passes);
    assert_eq!(told.delay, Some(("long".to_owned(), 2 * MINUTE)));
}

#[test]
fn a_delayed_request_is_charged_elsewhere() {
    let mut world = exhausted(vec![("slow", Action::Delay(MINUTE))]);
    world.everywhere(limit("pace", "", "2/hour"));
    assert_eq!(world.passing(&ask("GET /login"), 3), 2);
}

#[test]
fn what_trips_a_ban_names_its_key_and_what_is_banned_is_denied_until_its_end() {
    let mut world = exhausted(vec![("banned", ban())]);
    let told = world.decide(&ask("GET /login"));
    assert_eq!((told.penalty, told.new_bans.len()), (Penalty::Ban, 1));
    world.clock.advance(Duration::from_secs(7200));
    world.bans.insert(told.new_bans[0], MINUTE);
    let told = world.decide(&ask("GET /login"));
    assert_eq!((told.passes, told.penalty, told.retry_after), (false, Penalty::Ban, Some(MINUTE)));
    assert_eq!((told.new_bans.len(), told.charges), (0, 0), "knocking on a banned door counts nothing");
}

#[test]
fn a_ban_holds_on_every_route_of_its_limit_and_nowhere_else() {
    let mut world = world();
    let both = || Limit { then: then(ban()), ..limit("banned", "client_ip", "1/hour") };
    world.route("/one", vec![both()]);
    world.route("/two", vec![both()]);
    assert!(world.passes(&ask("GET /one")));
    let key = world.decide(&ask("GET /two")).new_bans[0];
    world.clock.advance(Duration::from_secs(7200));
    world.bans.insert(key, MINUTE);
    assert!(!world.passes(&ask("GET /one")) && !world.passes(&ask("GET /two")));
    assert!(world.passes(&ask("GET /else")));
    assert!(world.passes(&ask("GET /one").from("203.0.113.77")), "another client");
}

#[test]
fn a_shadow_bans_nobody() {
    let mut world = world();
    world.route("/login", vec![Limit { shadow: true, then: then(ban()), ..limit("would", "", "1/hour") }]);
    assert_eq!(world.passing(&ask("GET /login"), 3), 3);
    assert!(world.decide(&ask("GET /login")).new_bans.is_empty());
}

#[test]
fn a_challenge_and_a_tarpit_tell_what_they_are_about() {
    let world = exhausted(vec![("challenged", Action::Challenge)]);
    let told = world.decide(&ask("GET /login"));
    assert_eq!(told.penalty, Penalty::Challenge(told.charged[0]));
    let world = exhausted(vec![("held", Action::Tarpit(MINUTE))]);
    assert_eq!(world.decide(&ask("GET /login")).penalty, Penalty::Tarpit(MINUTE));
}
