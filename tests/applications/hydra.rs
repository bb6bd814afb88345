//! Hydra, a password guesser, with the gateway and without it.

use std::thread;

use crate::attack::words;
use crate::forms::{PASSWORD, forms};
use crate::support::{Gateway, hydra, recipe};

/// Where the password stands among a thousand words.
const PLACE: usize = 300;

/// The login as hydra is told of it.
const FORM: &str = "/login:username=^USER^&password=^PASS^:S=/account";

#[test]
fn a_password_that_is_found_without_the_gateway_is_not_found_with_it_and_the_owner_logs_in_meanwhile() {
    let application = forms();
    let words = words(PASSWORD, PLACE);
    assert!(hydra(application.address(), FORM, &words).contains("1 valid password found"), "without the gateway");
    let unguarded = application.logged("attempt redirect alice").len();
    assert!(unguarded > PLACE, "{unguarded} attempts");

    let gateway = recipe("login.yaml", application.address(), &[]);
    assert_eq!(owner_logs_in(&gateway), 302);
    let said = thread::scope(|scope| {
        let attack = scope.spawn(|| hydra(gateway.address(), FORM, &words));
        let mut logins = Vec::new();
        while !attack.is_finished() {
            logins.push(owner_logs_in(&gateway));
            thread::yield_now();
        }
        assert!(!logins.is_empty() && logins.iter().all(|status| *status == 302), "the owner is known");
        attack.join().expect("the attack does not panic")
    });
    assert!(said.contains("0 valid password found") || !said.contains("login: alice"), "{said}");
    let failures = application.logged("attempt redirect alice fails").len();
    let before = PLACE;
    assert!((before..=before + 40).contains(&failures), "{failures} in all, {before} of them without the gateway");
    let denied = gateway.stdout().iter().filter(|line| line.contains("\"limit\":\"login-a")).count();
    assert!(denied > 0, "the log tells of it");
}

fn owner_logs_in(gateway: &Gateway) -> u16 {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs([("username", "alice"), ("password", PASSWORD)]);
    gateway.post("/login").from("127.0.0.77").form(&form.finish()).send().status
}
