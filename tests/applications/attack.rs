//! The attacks on a login, none of which may succeed.

use std::net::SocketAddr;
use std::thread;

use crate::support::Gateway;
use crate::support::Response;
use crate::support::hydra;

/// A login behind a gateway, where one password is right for everybody.
pub(crate) trait Login: Sync {
    /// Where the application is.
    fn address(&self) -> SocketAddr;

    /// The login as hydra is told of it: path, fields and the sign of a success.
    fn form(&self) -> String;

    /// The right password.
    fn password(&self) -> &'static str;

    /// Tries to log in through the gateway, from an address.
    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response;

    /// Whether this is the answer to a success.
    fn is_success(&self, answer: &Response) -> bool;

    /// How many passwords the application has judged for this name.
    fn judged(&self, name: &str) -> usize;

    /// Whether the right password gets in.
    fn gets_in(&self, gateway: &Gateway, from: &str, name: &str) -> bool {
        self.is_success(&self.log_in(gateway, from, name, self.password()))
    }
}

/// Who is sent a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Asked {
    Application,
    Gateway,
}

/// Where the password stands among a thousand words.
const PLACE: usize = 100;

/// How many guesses a recipe lets reach the application for one name, at most, within a few minutes.
const GUESSES: usize = 10;

/// A tool that guesses passwords for a living finds alice's without the gateway, and not with it, while she logs in.
#[track_caller]
pub(crate) fn a_thousand_words_find_nothing(login: &impl Login, gateway: &Gateway) {
    let (form, words) = (login.form(), words(login.password(), PLACE));
    let found = hydra(login.address(), &form, &words);
    assert!(found.contains("1 valid password found"), "without the gateway: {found}");
    let unguarded = login.judged("alice");
    assert!(unguarded > PLACE, "{unguarded} attempts");

    assert!(login.gets_in(gateway, "127.0.0.77", "alice"), "no guess was made yet");
    let mut successes = 1;
    let said = thread::scope(|scope| {
        let attack = scope.spawn(|| hydra(gateway.address(), &form, &words));
        while !attack.is_finished() {
            assert!(login.gets_in(gateway, "127.0.0.77", "alice"), "the owner is known");
            successes += 1;
        }
        attack.join().expect("the attack does not panic")
    });
    assert!(said.contains("0 valid password") || !said.contains("login: alice"), "{said}");
    assert!(login.gets_in(gateway, "127.0.0.77", "alice"), "the owner is still known");
    successes += 1;
    let guesses = login.judged("alice") - unguarded - successes;
    assert!((1..=GUESSES).contains(&guesses), "{guesses} guesses, {successes} logins of the owner");
    let denied = gateway.stdout().iter().filter(|line| line.contains("\"decision\":\"denied\"")).count();
    assert!(denied > 0, "the log tells of it");
}

/// Something that may look like a success, done again and again beside guesses at a name, gives no further guess, and
/// makes no client known that is not.
#[track_caller]
pub(crate) fn buys_nothing(login: &impl Login, gateway: &Gateway, name: &str, look_alike: impl Fn(&str)) {
    let forger = "127.0.0.66";
    let before = login.judged(name);
    for round in 1..=GUESSES + 2 {
        look_alike(forger);
        let answer = login.log_in(gateway, &format!("127.0.1.{round}"), name, "guess");
        assert!(!login.is_success(&answer), "a guess");
    }
    let judged = login.judged(name) - before;
    assert!(judged <= GUESSES, "{judged} guesses at {name}");
    assert!(!login.gets_in(gateway, forger, name), "{name} does not know who forges");
    assert!(!login.gets_in(gateway, "127.0.1.200", name), "{name} is not guessed at any more");
}

/// However the login's path is spelled: where the application reads it as the login, the gateway does. `ask` sends a guess
/// at this name. How many spellings are the login.
#[track_caller]
pub(crate) fn readings_are_throttled(
    login: &impl Login,
    gateway: &Gateway,
    name: &str,
    targets: &[&str],
    ask: impl Fn(Asked, &str) -> Response,
) -> usize {
    for round in 1..=GUESSES {
        login.log_in(gateway, &format!("127.0.2.{round}"), name, "guess");
    }
    let mut read = 0;
    let mut slipped = Vec::new();
    for target in targets {
        let before = login.judged(name);
        ask(Asked::Application, target);
        if login.judged(name) == before {
            continue;
        }
        read += 1;
        let before = login.judged(name);
        let answer = ask(Asked::Gateway, target);
        if login.judged(name) != before {
            slipped.push((*target, answer.status));
        }
    }
    assert!(slipped.is_empty(), "{} of {read} readings slip past: {slipped:?}", slipped.len());
    read
}

/// A thousand words, of which one is the password.
pub(crate) fn words(password: &str, place: usize) -> Vec<String> {
    (0..1000).map(|number| if number == place { password.to_owned() } else { format!("guess-{number}") }).collect()
}

/// Fields as a browser sends them.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}
