//! Runs attacks on a login form behind its recipe: how many attempts reach the application, and whether the owner can
//! still log in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::thread::ScopedJoinHandle;

use serde_json::Value;

use crate::forms::{PASSWORD, forms};
use crate::served::Served;
use crate::support::{Gateway, RedisServer, Request, eventually, recipe};

/// How many attempts of an attack are under way at once.
const AT_ONCE: usize = 40;

const OWNER: (&str, &str) = ("127.0.0.5", "alice");

/// One attempt of an attack: from this address, at this name.
type Attempt = (String, String);

/// What came of an attack.
struct Attack {
    application: Served,
    gateway: Gateway,
    /// Attempts that were answered by the application, and those that were refused.
    passed: usize,
    refused: usize,
    /// How often the owner got in meanwhile.
    logins: usize,
}

impl Attack {
    /// Makes these attempts, each with a wrong password, at the recipe with these changes, which counts in memory and
    /// then in Redis. The owner is known before, and logs in as often as the attack leaves time for.
    #[track_caller]
    fn on_each_store(attempts: &[Attempt], changes: &[(&str, &str)], check: impl Fn(&Self)) {
        check(&Self::run(attempts, changes));
        let redis = RedisServer::start();
        let store = format!("store:\n  redis: {{url: \"{}\", timeout: 15s}}\n\nroutes:\n", redis.url());
        check(&Self::run(attempts, &[changes, &[("routes:\n", store.as_str())]].concat()));
        assert_ne!(redis.cli(&["DBSIZE"]), "0", "nothing was counted there");
    }

    #[track_caller]
    fn run(attempts: &[Attempt], changes: &[(&str, &str)]) -> Self {
        let application = forms();
        let gateway = recipe("login.yaml", application.address(), changes);
        let (from, name) = OWNER;
        let owner = || log_in(&gateway, from, name, PASSWORD);
        assert_eq!(owner(), 302);
        let next = AtomicUsize::new(0);
        let guess = || {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let (from, name) = attempts.get(number)?;
            Some(log_in(&gateway, from, name, &format!("guess-{number}")))
        };
        let (statuses, logins) = thread::scope(|scope| {
            let attackers: Vec<_> =
                (0..AT_ONCE).map(|_| scope.spawn(|| std::iter::from_fn(guess).collect::<Vec<u16>>())).collect();
            let mut logins = 1;
            while logins == 1 || !attackers.iter().all(ScopedJoinHandle::is_finished) {
                assert_eq!(owner(), 302, "the owner is known");
                logins += 1;
            }
            let statuses = attackers.into_iter().flat_map(|attacker| attacker.join().expect("attackers do not panic"));
            (statuses.collect::<Vec<u16>>(), logins)
        });
        let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
        let (passed, refused) = (count(200), count(429));
        assert_eq!(passed + refused, attempts.len(), "{statuses:?}");
        let attack = Self { application, gateway, passed, refused, logins };
        attack.is_told();
        attack
    }

    /// Application, log and metrics tell the same story.
    #[track_caller]
    fn is_told(&self) {
        let attempts = |outcome: &str| {
            let lines = self.application.logged("attempt redirect ");
            lines.iter().filter(|line| line.ends_with(outcome)).count()
        };
        eventually("the application says what it was asked", || {
            (attempts(" fails"), attempts(" succeeds")) == (self.passed, self.logins)
        });
        eventually("every request is logged", || self.logged().len() == self.passed + self.refused + self.logins);
        let outcome =
            |name: &str| self.metric(&format!("portcullis_outcomes_total{{route=\"login\",outcome=\"{name}\"}}"));
        assert_eq!((outcome("failure"), outcome("success")), (self.passed, self.logins));
    }

    fn logged(&self) -> Vec<Value> {
        self.gateway.stdout().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// How many lines of the log say that this limit decided so.
    fn decided(&self, limit: &str, decision: &str) -> usize {
        self.logged().iter().filter(|line| line["limit"] == limit && line["decision"] == decision).count()
    }

    /// How many were refused by this limit that bans. While slots are taken that is a denial without a ban: no guess has an
    /// outcome yet.
    fn refused_by(&self, limit: &str) -> usize {
        self.decided(limit, "banned") + self.decided(limit, "denied")
    }

    fn ends_with_bans(&self, count: usize) {
        eventually("the guesses are settled and their client is banned", || self.metric("portcullis_bans") == count);
    }

    /// How often this limit decided so, by the metrics.
    fn decisions(&self, limit: &str, decision: &str) -> usize {
        self.metric(&format!("portcullis_limit_decisions_total{{limit=\"{limit}\",decision=\"{decision}\"}}"))
    }

    /// A counter; one that was never counted is 0.
    fn metric(&self, name: &str) -> usize {
        let metrics = Request::new(self.gateway.admin(), "GET", "/metrics").send().text();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_default()
    }
}

fn log_in(gateway: &Gateway, from: &str, name: &str, password: &str) -> u16 {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs([("username", name), ("password", password)]);
    gateway.post("/login").from(from).form(&form.finish()).status()
}

/// So many different clients.
fn addresses(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("127.0.{}.{}", 1 + number / 200, 1 + number % 200))
}

/// One client with a list of names, each with the password it has elsewhere.
fn stuffing() -> Vec<Attempt> {
    (0..300).map(|number| ("127.0.9.9".to_owned(), format!("name-{number}"))).collect()
}

/// One password at every name, from a handful of addresses in turn.
fn spraying() -> Vec<Attempt> {
    let names = (0..200).map(|number| if number == 77 { OWNER.1.to_owned() } else { format!("name-{number}") });
    addresses(5).collect::<Vec<_>>().into_iter().cycle().zip(names).collect()
}

/// Every client once at the one name.
fn distributed() -> Vec<Attempt> {
    addresses(300).map(|address| (address, OWNER.1.to_owned())).collect()
}

/// What stands for an attacker's patience: the limits of minutes, of networks and of failures in all do not count.
const PATIENCE: [(&str, &str); 4] = [
    ("rate: 5 per 10 minutes", "rate: 9999/hour"),
    ("rate: 20/minute; 200/hour", "rate: 9999/hour"),
    ("rate: 50 per 10 minutes", "rate: 9999/hour"),
    ("rate: 10/minute; 50/hour", "rate: 9999/hour"),
];

#[test]
fn of_a_list_of_three_hundred_stolen_passwords_five_reach_the_application_and_its_client_is_banned() {
    Attack::on_each_store(&stuffing(), &[], |attack| {
        assert_eq!((attack.passed, attack.refused), (5, 295));
        assert_eq!(attack.refused_by("login-address"), 295);
        attack.ends_with_bans(1);
        // One that would fit is refused like all others.
        assert_eq!(log_in(&attack.gateway, "127.0.9.9", "bob", PASSWORD), 429);
        assert_eq!(log_in(&attack.gateway, "127.0.9.10", "bob", PASSWORD), 302, "anybody else gets in");
    });
}

#[test]
fn whoever_has_the_patience_for_more_of_the_list_is_banned_after_twenty_names() {
    Attack::on_each_store(&stuffing(), &PATIENCE, |attack| {
        assert_eq!((attack.passed, attack.refused), (20, 280));
        assert_eq!(attack.refused_by("login-guessing"), 280);
        attack.ends_with_bans(1);
        assert_eq!(log_in(&attack.gateway, "127.0.9.9", "bob", PASSWORD), 429);
    });
}

#[test]
fn one_password_at_two_hundred_names_is_tried_five_times_from_each_address() {
    Attack::on_each_store(&spraying(), &[], |attack| {
        assert_eq!((attack.passed, attack.refused), (25, 175));
        assert_eq!(attack.refused_by("login-address"), 175);
        attack.ends_with_bans(5);
    });
}

#[test]
fn whoever_has_the_patience_for_more_names_is_slowed_down_and_banned_after_twenty_from_each_address() {
    Attack::on_each_store(&spraying(), &PATIENCE, |attack| {
        assert_eq!((attack.passed, attack.refused), (100, 100));
        assert_eq!(attack.refused_by("login-guessing"), 100);
        assert_eq!(attack.decided("login-crowd", "delayed"), 50);
        // Metrics tell of those as well that were banned when there was no room in the crowd either.
        assert!((50..=150).contains(&attack.decisions("login-crowd", "delayed")));
        attack.ends_with_bans(5);
    });
}

#[test]
fn of_guesses_at_one_name_from_three_hundred_addresses_ten_reach_the_application_in_a_minute() {
    Attack::on_each_store(&distributed(), &[], |attack| {
        assert_eq!((attack.passed, attack.refused), (10, 290));
        assert_eq!(attack.decided("login-account", "denied"), 290);
        assert_eq!(attack.decisions("login-account", "denied"), 290);
        assert_eq!(log_in(&attack.gateway, "127.0.9.1", OWNER.1, PASSWORD), 429, "a stranger, whatever it knows");
        assert_eq!(log_in(&attack.gateway, "127.0.9.1", "bob", PASSWORD), 302, "at another name");
    });
}

#[test]
fn in_an_hour_a_name_is_guessed_at_from_twenty_addresses_at_most() {
    Attack::on_each_store(&distributed(), &PATIENCE, |attack| {
        assert_eq!((attack.passed, attack.refused), (20, 280));
        assert_eq!(attack.decided("login-distributed", "denied"), 280);
        assert_eq!(attack.decisions("login-distributed", "denied"), 280);
    });
}

/// Ten guesses of each of forty clients in as many networks.
fn mob() -> Vec<Attempt> {
    let guess = |number: usize| (format!("127.0.{}.9", 1 + number % 40), format!("name-{number}"));
    (0..400).map(guess).collect()
}

#[test]
fn forty_clients_that_guess_are_banned_one_by_one_and_nobody_else_is_kept_out() {
    Attack::on_each_store(&mob(), &[], |attack| {
        assert_eq!((attack.passed, attack.refused), (200, 200));
        assert_eq!(attack.refused_by("login-address"), 200);
        assert_eq!(attack.decided("login-siege", "challenged") + attack.decided("login-lockdown", "banned"), 0);
        // Each that still fails is banned then.
        for number in 0..40 {
            assert_eq!(log_in(&attack.gateway, &format!("127.0.{}.9", 1 + number), "bob", PASSWORD), 429);
        }
        attack.ends_with_bans(40);
        assert_eq!(log_in(&attack.gateway, "127.0.200.1", "bob", PASSWORD), 302, "anybody else gets in");
    });
}
