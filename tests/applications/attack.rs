//! The attacks on a login, none of which may succeed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use crate::alphabet::Guess;
use crate::support::{Gateway, Response, hydra};

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

/// Where the owner of an account comes from.
const OWNER: &str = "127.0.0.77";

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

    assert!(login.gets_in(gateway, OWNER, "alice"), "no guess was made yet");
    let mut successes = 1;
    let said = thread::scope(|scope| {
        let attack = scope.spawn(|| hydra(gateway.address(), &form, &words));
        while !attack.is_finished() {
            assert!(login.gets_in(gateway, OWNER, "alice"), "the owner is known");
            successes += 1;
        }
        attack.join().expect("the attack does not panic")
    });
    assert!(said.contains("0 valid password") || !said.contains("login: alice"), "{said}");
    assert!(login.gets_in(gateway, OWNER, "alice"), "the owner is still known");
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

/// How many guesses of an alphabet are sent to the application itself, to see that it reads them.
const SAMPLE: usize = 60;

/// However a guess at this name is written down, and from as many addresses as there are ways: the application judges no more
/// than the limit says, and the owner gets in. `send` sends a guess to an address, from another.
#[track_caller]
pub(crate) fn all_guesses_count(
    login: &impl Login,
    gateway: &Gateway,
    name: &str,
    guesses: &[Guess],
    send: impl Fn(SocketAddr, &str, &Guess) -> Response + Sync,
) {
    let sample: Vec<&Guess> = guesses.iter().step_by(guesses.len().div_ceil(SAMPLE)).collect();
    each_at_once(&sample, |_, guess| drop(send(login.address(), "127.0.0.1", guess)));
    let read = login.judged(name);
    assert!(read >= SAMPLE / 12, "{read} are read as guesses at {name}");
    assert!(login.gets_in(gateway, OWNER, name), "no guess was made yet");
    let before = login.judged(name);
    each_at_once(guesses, |number, guess| {
        let from = format!("127.{}.{}.{}", 1 + number / 40_000, 1 + number / 200 % 200, 1 + number % 200);
        send(gateway.address(), &from, guess);
    });
    let judged = login.judged(name) - before;
    assert!((1..=GUESSES).contains(&judged), "{judged} of {} guesses at {name}", guesses.len());
    assert!(login.gets_in(gateway, OWNER, name), "the owner is known");
}

/// How many guesses at one name a recipe lets reach the application within a few minutes, where all are spelled alike.
const EXACTLY: usize = 5;

/// An answer to somebody who is signed in as somebody else is no success of the name in the request: `forge` asks for such
/// answers, and the application judges exactly as many guesses as without them. `FORGED=1000` tries so often.
#[track_caller]
pub(crate) fn success_stays_the_names_own(
    login: &impl Login,
    gateway: &Gateway,
    name: &str,
    forge: impl Fn(&str) -> Response,
) {
    let rounds = env::var("FORGED").map_or(30, |rounds| rounds.parse().expect("a number of rounds"));
    let client = |round: usize| format!("127.{}.{}.{}", 100 + round / 40_000, round / 200 % 200, 1 + round % 200);
    let before = login.judged(name);
    // All that are let through first, so that forging costs none of them.
    for round in 0..EXACTLY - 1 {
        login.log_in(gateway, &client(round), name, "guess");
    }
    let forged = forge(&client(rounds));
    assert!(
        login.is_success(&forged),
        "it looks like a success: {} {:?}",
        forged.status,
        forged.headers.all("set-cookie")
    );
    for round in EXACTLY..rounds {
        forge(&client(round));
        // From where the success seemed to be, too.
        for from in [client(round), client(rounds)] {
            let answer = login.log_in(gateway, &from, name, "guess");
            assert!(!login.is_success(&answer), "a guess");
        }
    }
    let judged = login.judged(name) - before;
    // The forged one was a failure of the name.
    assert_eq!(judged, EXACTLY - 1, "of {} guesses at {name}", 2 * rounds);
    assert!(!login.gets_in(gateway, &client(rounds), name), "{name} does not know who forges");
}

/// Does something with each, four at a time.
fn each_at_once<T: Sync>(items: &[T], act: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((number, item)) = items.iter().enumerate().nth(next.fetch_add(1, Ordering::SeqCst)) {
            act(number, item);
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
}

/// A thousand words, of which one is the password.
pub(crate) fn words(password: &str, place: usize) -> Vec<String> {
    (0..1000).map(|number| if number == place { password.to_owned() } else { format!("guess-{number}") }).collect()
}

/// Fields as a browser sends them.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}
