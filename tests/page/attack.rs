//! The story of one attack, as whoever is called at night learns it: who, since when, which limits, why the owner of the
//! account was denied once; then a ban, and its end. Two gateways on one Redis tell the same to programs, on the page and
//! in a terminal.

use std::thread;

use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::fleet::Fleet;
use crate::support::{Response, eventually, hydra};

/// Hydra has this address, the owner of the account the other.
const ATTACKER: &str = "127.0.0.1";
const OWNER: &str = "127.0.0.77";

/// How many guesses at one account the rules let through, within ten seconds and from one address.
const GUESSES: usize = 8;

/// Each of 40 accounts is tried from ten of 200 addresses, of which the rules let five through.
const ACCOUNTS: usize = 40;
const ADDRESSES: usize = 200;
const SPRAYED: usize = 400;
const SPRAYED_THROUGH: usize = 200;

#[test]
fn any_gateway_tells_the_story_of_an_attack_and_ends_it() {
    let fleet = Fleet::start();
    let page = Browser::start();
    fleet.show(1, &page);
    page.says("#verdict-sentence", "All is well.");

    let before = clock();
    let denied_owner = attack(&fleet);
    page.says("#verdict-sentence", "Under attack");
    let attacker = Attacker::of(&fleet, before);
    for gateway in [0, 1] {
        says_who_and_since_when(&fleet, gateway, &attacker);
        says_where(&fleet, gateway, &attacker);
        fleet.show(gateway, &page);
        says_why(&fleet, gateway, &denied_owner, &page);
    }
    shows_what_the_api_says(&fleet, &page, &attacker);
    bans_and_lifts(&fleet, &page);
}

/// Hydra guesses at one account, 200 addresses spray one password over others, and the owner logs in meanwhile: denied
/// once, for the attacker has used up what both share, then admitted. Returns the denial.
#[track_caller]
fn attack(fleet: &Fleet) -> Response {
    let words: Vec<_> = (0..200).map(|number| format!("guess-{number}")).collect();
    thread::scope(|scope| {
        let form = "/login:username=^USER^&password=^PASS^:S=/account";
        let guessing = scope.spawn(|| hydra(fleet.gateways[0].address(), form, &words));
        let spraying = scope.spawn(|| spray(fleet));
        eventually("the guesses at the account are used up", || fleet.judged("alice") == GUESSES);
        let denied = fleet.log_in(0, OWNER, "alice", "right");
        assert_eq!(denied.status, 429, "{}", denied.text());
        eventually("the account may be tried again", || {
            fleet.api(1, "limits/login-account/state?param.username=alice")["allowed"] == true
        });
        assert_eq!(fleet.log_in(1, OWNER, "alice", "right").status, 302, "the owner gets in");
        assert_eq!(spraying.join().expect("the spray does not panic"), SPRAYED_THROUGH);
        let said = guessing.join().expect("the attack does not panic");
        assert!(said.contains("0 valid password") || !said.contains("login: alice"), "{said}");
        // The application has received exactly what the rules allow.
        assert_eq!(fleet.judged("alice"), GUESSES + 1);
        assert_eq!(fleet.judged(""), GUESSES + 1 + SPRAYED_THROUGH);
        denied
    })
}

/// Tries one password at all accounts, over both gateways; how many tries were let through.
fn spray(fleet: &Fleet) -> usize {
    let attempt = |number: usize| {
        let (address, round) = (number % ADDRESSES, number / ADDRESSES);
        let source = format!("127.0.{}.{}", 1 + address / 100, 1 + address % 100);
        let account = format!("account-{}", (number + round) % ACCOUNTS);
        let status = fleet.log_in(number % 2, &source, &account, "spring").status;
        assert!(matches!(status, 401 | 429), "{status}");
        status == 401
    };
    let one_part = |part: usize| (part..SPRAYED).step_by(PARTS).filter(|number| attempt(*number)).count();
    thread::scope(|scope| {
        let parts: Vec<_> = (0..PARTS).map(|part| scope.spawn(move || one_part(part))).collect();
        parts.into_iter().map(|part| part.join().expect("no part panics")).sum()
    })
}

/// So many parts of the spray run at a time.
const PARTS: usize = 4;

/// What the logs tell of the attacker.
#[derive(Debug)]
struct Attacker {
    began_after: Timestamp,
    requests: usize,
    denied: usize,
}

impl Attacker {
    #[track_caller]
    fn of(fleet: &Fleet, began_after: Timestamp) -> Self {
        let lines = fleet.logged(ATTACKER);
        let count = |wanted: &dyn Fn(&Value) -> bool| lines.iter().filter(|line| wanted(line)).count();
        let denied = count(&|line| line["decision"] == "denied");
        assert_eq!(count(&|line| line["route"] == "login"), GUESSES + denied);
        assert!(denied > SPRAYED_THROUGH / 2, "{denied} denials");
        Self { began_after, requests: lines.len(), denied }
    }

    /// All denials: those of the attacker, of the spray, and the one of the owner.
    fn all_denied(&self) -> usize {
        self.denied + (SPRAYED - SPRAYED_THROUGH) + 1
    }
}

#[track_caller]
fn says_who_and_since_when(fleet: &Fleet, gateway: usize, attacker: &Attacker) {
    let mut first = Value::Null;
    eventually("the attacker is the busiest client", || {
        first = fleet.api(gateway, "top")[0].take();
        (&first["requests"], &first["denied"]) == (&json!(attacker.requests), &json!(attacker.denied))
    });
    assert_eq!(first["key"], json!({"client_ip": ATTACKER}));
    let since = first["first"].as_str().expect("a moment");
    let began: Timestamp = since.parse().expect("a moment");
    assert!(attacker.began_after <= began && began <= clock(), "{since}");
    let table = fleet.gateways[gateway].run(&["top"]).stdout;
    let row: Vec<_> = table.lines().nth(1).expect("a row").split_whitespace().collect();
    let [denied, failed, requests] = [attacker.denied, GUESSES, attacker.requests].map(|count| count.to_string());
    assert_eq!(row[..5], [ATTACKER, &denied, &failed, &requests, since], "{table}");
}

#[track_caller]
fn says_where(fleet: &Fleet, gateway: usize, attacker: &Attacker) {
    let count = |kind: &str, name: &str, decision: &str| fleet.counted(gateway, kind, name, decision);
    eventually("all requests are counted", || {
        (count("routes", "login", "allowed"), count("routes", "login", "denied"))
            == (fleet.judged(""), attacker.all_denied())
    });
    assert_eq!(count("limits", "login-pace", "denied"), attacker.denied);
    assert_eq!(count("limits", "login-spray", "denied"), SPRAYED - SPRAYED_THROUGH);
    let events = fleet.gateways[gateway].run(&["events", "--since", "10m"]).stdout;
    assert!(events.contains(&format!("  {} denials of login-pace for {ATTACKER}", attacker.denied)), "{events}");

    // The last minute moves on while it is compared.
    eventually("the last minute is told", || {
        let lately = &fleet.api(gateway, "status")["last_minute"];
        let told = format!("\nlast minute   {} passed, {} denied", lately["passed"], lately["denied"]);
        fleet.gateways[gateway].run(&["status"]).stdout.contains(&told)
    });
    let status = fleet.gateways[gateway].run(&["status"]).stdout;
    assert_eq!(status.lines().filter(|line| line.contains(" up ")).count(), 2, "{status}");
}

/// The sentence is the same for programs, in a terminal and on the page.
#[track_caller]
fn says_why(fleet: &Fleet, gateway: usize, denied: &Response, page: &Browser) {
    let id = denied.header("x-request-id").expect("an id");
    let mut story = Value::Null;
    eventually("the story is known", || {
        story = fleet.api(gateway, &format!("requests/{id}"));
        !story.is_null()
    });
    assert_eq!(
        (&story["client"], &story["limit"], &story["route"]),
        (&json!(OWNER), &json!("login-account"), &json!("login"))
    );
    let sentence = story["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("the limit login-account allows 8 "), "{sentence}");
    assert!(gateway != 0 || sentence.contains("alice"), "the name is in clear where it was seen: {sentence}");
    let why = fleet.gateways[gateway].run(&["why", id]).stdout;
    assert_eq!(why.lines().next(), Some(sentence));
    page.fill("#request-id", id);
    page.press(Key::Enter);
    page.says("#story-sentence", sentence);
    // A name that is masked here names no key.
    assert_eq!(page.text("#story").contains("See login-account"), sentence.contains("alice"));
}

#[track_caller]
fn shows_what_the_api_says(fleet: &Fleet, page: &Browser, attacker: &Attacker) {
    let Attacker { requests, denied, .. } = attacker;
    page.says("#chart figcaption", &format!("{} denied in this time", attacker.all_denied()));
    let since = fleet.api(1, "top")[0]["first"].as_str().expect("a moment")[11..19].to_owned();
    let shown = [format!("client_ip {ATTACKER}"), denied.to_string(), requests.to_string(), since];
    eventually("the attacker is on top, with the beginning", || {
        let row = &page.rows("#top-list")[0];
        [0, 1, 3, 4].map(|column| row[column].clone()) == shown
    });
    let row = |list: &str, name: &str| page.rows(list).into_iter().find(|row| row[0] == name).expect("a row");
    assert_eq!(row("#routes", "login")[3..5], [fleet.judged("").to_string(), attacker.all_denied().to_string()]);
    assert_eq!(row("#limits", "login-pace")[4], denied.to_string());
    assert_eq!(row("#limits", "login-spray")[4], (SPRAYED - SPRAYED_THROUGH).to_string());
    assert_eq!(page.rows("#gateways-list").len(), 2);
}

/// From the list of the busiest to a ban, which holds at both gateways until it is lifted.
#[track_caller]
fn bans_and_lifts(fleet: &Fleet, page: &Browser) {
    page.push(&format!("#top-list button[aria-label='Ban client_ip {ATTACKER}']"));
    page.confirm(&format!("Ban {ATTACKER} for 1h?"));
    page.says("#bans-list", &format!("{ATTACKER}/32"));
    page.says("#top-list", "banned until");
    for gateway in [0, 1] {
        eventually("the attacker is banned", || fleet.browse(gateway, ATTACKER) == 403);
        assert_eq!(fleet.browse(gateway, OWNER), 200, "the owner is not");
        assert_eq!(fleet.api(gateway, "bans")[0]["address"], format!("{ATTACKER}/32"));
    }
    page.push("#bans-list button");
    page.confirm(&format!("Lift the ban of {ATTACKER}/32?"));
    page.says("#bans-list", "Nothing is banned.");
    page.says("#events-list", "unban");
    for gateway in [0, 1] {
        eventually("the ban has ended", || fleet.browse(gateway, ATTACKER) == 200);
        assert_eq!(fleet.api(gateway, "bans"), json!([]));
    }
}

/// The time as the gateways tell it, to the millisecond.
fn clock() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).expect("it was a timestamp")
}
