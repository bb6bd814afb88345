//! Hydra, a password guesser, with the gateway and without it.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;

use tempfile::TempDir;

use crate::forms::PASSWORD;
use crate::forms::forms;
use crate::support::Gateway;
use crate::support::recipe;

/// Where the password stands among a thousand words.
const PLACE: usize = 300;

#[test]
fn a_password_that_is_found_without_the_gateway_is_not_found_with_it_and_the_owner_logs_in_meanwhile() {
    let application = forms();
    let folder = tempfile::tempdir().expect("a folder for the words");
    assert!(hydra(&folder, application.address()).contains("1 valid password found"), "without the gateway");
    let unguarded = application.logged("attempt redirect alice").len();
    assert!(unguarded > PLACE, "{unguarded} attempts");

    let gateway = recipe("login.yaml", application.address(), &[]);
    assert_eq!(owner_logs_in(&gateway), 302);
    let said = thread::scope(|scope| {
        let attack = scope.spawn(|| hydra(&folder, gateway.address()));
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

/// Guesses with a thousand words, of which one is right; what the tool said.
fn hydra(folder: &TempDir, address: SocketAddr) -> String {
    let mut words = String::new();
    for number in 0..1000 {
        let _ = if number == PLACE { writeln!(words, "{PASSWORD}") } else { writeln!(words, "guess-{number}") };
    }
    fs::write(folder.path().join("words"), words).expect("a file in the folder");
    let output = Command::new("timeout")
        .args(["60", "hydra", "-I", "-t", "16", "-l", "alice", "-P", "words", "-s", &address.port().to_string()])
        .args(["127.0.0.1", "http-post-form", "/login:username=^USER^&password=^PASS^:S=/account"])
        .current_dir(folder.path())
        .output()
        .expect("hydra is installed: ./tests/run installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
