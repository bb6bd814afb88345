//! The first screen in a night under attack: is it well, what is attacked, by whom, did anybody get in, what was done, what can
//! I do.

use fantoccini::key::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::site::Site;
use crate::support::eventually;

/// So many minutes ago.
fn ago(minutes: i64) -> String {
    let time = Timestamp::now().checked_sub(SignedDuration::from_mins(minutes)).expect("a time");
    Timestamp::from_second(time.as_second()).expect("it was a time").to_string()
}

/// An attack from five networks, of which a ban of four is proposed.
fn attacks() -> Value {
    let network = |network: &str, clients: u64, requests: u64| json!({"network": network, "clients": clients, "requests": requests});
    json!([{
        "id": "a1", "kind": "stuffing", "route": "login", "limit": "login-pace", "since": ago(18), "last": ago(0), "over": false,
        "requests": 16_840, "denied": 14_410, "failed": 2_380, "signed_in": 1, "clients": 360, "accounts": 2_214,
        "networks": [
            network("127.0.5.0/24", 214, 9_920), network("127.0.6.0/26", 61, 3_510), network("127.0.7.0/27", 27, 1_400),
            network("2001:db8:17::/48", 41, 1_180), network("127.0.9.7/32", 1, 220),
        ],
        "agents": [{"agent": "python-requests/2.31.0", "requests": 11_204}],
        "names": [{"account": "alice", "failed": 41, "signed_in": 1}, {"account": "admin", "failed": 22, "signed_in": 0}],
        "others_denied": 3, "would_hit": 2,
        "sentence": "Stuffing on the route login: 360 clients from 5 networks tried 2,214 accounts.",
        "ban": "portcullis bans add 127.0.5.0/24 127.0.7.0/27 2001:db8:17::/48 127.0.9.7/32 --for 1h",
    }])
}

/// A sign-in to the account of alice after failures.
fn entered(minutes: i64, client: &str) -> Value {
    json!({
        "time": ago(minutes), "event": "signed_in_after_failures", "account": "alice", "client": client, "failures": 41,
        "clients": 38, "route": "login", "request_id": "4bf92f3577b34da6a3ce929d0e0e4736", "limit": null, "key": null, "until": null,
    })
}

/// One sign-in after failures, told twice, a lockdown and a reload.
fn past() -> Value {
    let lockdown = json!({"time": ago(4), "event": "ban", "limit": "everyone", "key": {}, "client": null, "until": ago(-5), "reason": "too many"});
    let reload = json!({"time": ago(40), "event": "reload", "limit": null, "key": null, "client": null, "until": null, "reason": "loaded"});
    json!([entered(1, "127.0.5.214"), entered(3, "127.0.5.214"), lockdown, reload])
}

/// The page of a site under attack, as wide and as high as a desk's, after these events.
#[track_caller]
fn night(site: &Site, past: &Value) -> Browser {
    for number in 0..60 {
        site.log_in(&format!("127.0.5.{}", number % 7 + 1), "alice");
    }
    let page = Browser::start();
    page.answer("attacks", &attacks());
    page.answer("events/recent", past);
    page.open(&site.url());
    page.says("#verdict-sentence", "Under attack");
    page.says("#attacks", "Stuffing on login");
    page
}

/// What stands on the first screen, each with what it says.
const FIRST_SCREEN: [(&str, &str); 9] = [
    ("nav", "Lift a ban"),
    ("#verdict-heading", "✕ Under attack"),
    ("#entered", "✕ alice signed in 2 times, the last at"),
    ("#attacks .attack > p", "360 clients from 5 networks"),
    ("#attacks .networks", "127.0.5.0/24"),
    ("#attacks .lists", "alice 41 failures, ✕ 1 sign-in"),
    ("#attacks .marked", "Ban 4 marked…"),
    ("#figures", "Denied"),
    ("#chart figcaption", "denied in this time"),
];

#[test]
fn a_night_under_attack_is_understood_without_scrolling() {
    let site = Site::start();
    let page = night(&site, &past());
    page.says("#done-list", "Banned everyone by everyone: too many");
    for (selector, says) in FIRST_SCREEN {
        page.says(selector, says);
        let bottom =
            page.script(&format!("return document.querySelector({selector:?}).getBoundingClientRect().bottom"));
        assert!(bottom.as_f64().expect("a length") <= 800.0, "{selector} ends at {bottom}");
    }
    let top = page.script("return document.querySelector('#done-list').getBoundingClientRect().top");
    assert!(top.as_f64().expect("a length") < 760.0, "what was done begins at {top}");
    // The red of an attack is red.
    let red = page.script("return getComputedStyle(document.querySelector('#verdict-heading')).backgroundColor.match(/\\d+/g).map(Number)");
    let red: Vec<u32> = serde_json::from_value(red).expect("a colour");
    assert!(red[0] > 150 && red[1] < 40 && red[2] < 60, "{red:?}");
    // At 360 pixels nothing scrolls sideways.
    for scheme in ["light", "dark"] {
        page.look(360, scheme);
        assert_eq!(page.script("return document.documentElement.scrollWidth"), 360, "{scheme}");
    }
}

#[test]
fn the_requests_stand_beside_an_attack_of_which_nothing_was_done_yet() {
    let site = Site::start();
    let page = night(&site, &json!([]));
    page.says("#done", "Nothing is banned");
    let [attacks, traffic, done] = ["#attacks", "#traffic", "#done"].map(|card| {
        let edges = format!(
            "const card = document.querySelector({card:?}).getBoundingClientRect();\nreturn [card.left, card.top]"
        );
        serde_json::from_value::<[f64; 2]>(page.script(&edges)).expect("two lengths")
    });
    assert!((attacks[1] - traffic[1]).abs() < 1.0 && attacks[0] < traffic[0], "{attacks:?} {traffic:?}");
    assert!((traffic[0] - done[0]).abs() < 1.0 && traffic[1] < done[1], "{traffic:?} {done:?}");
}

#[test]
fn a_sign_in_from_elsewhere_is_told_apart_from_one_of_the_attack() {
    let site = Site::start();
    let page = night(&site, &json!([entered(2, "198.51.100.7")]));
    page.says("#entered", "✓ Nobody signed in from a network that attacks.");
    page.says("#entered summary", "1 sign-in after failures came from elsewhere");
    assert_eq!(page.script("return document.getElementById('entered').className"), "look");
    page.tab_to("#entered summary");
    page.type_text(" ");
    page.says("#entered", "alice signed in at");

    let page = night(&site, &json!([entered(1, "127.0.5.214"), entered(2, "198.51.100.7")]));
    page.says("#entered-list > .entry", "from 127.0.5.214");
    page.says("#entered summary", "1 sign-in after failures came from elsewhere");
    assert_eq!(page.script("return document.getElementById('entered').className"), "bad");
}

#[test]
fn the_networks_of_an_attack_are_banned_in_place() {
    let site = Site::start();
    let page = night(&site, &past());
    page.push("#attacks .marked button");
    page.says("#ask", "Ban 4 addresses and networks for 1h?");
    page.says("#ask", "The ban would stop also 2 clients that signed in lately.");
    page.decline(Key::Escape);
    assert_eq!(site.api("/api/v1/bans"), json!([]));

    // Without one of them nothing is said of whom the ban would meet.
    page.tab_to("#attacks input[aria-label='Mark 127.0.9.7/32']");
    page.type_text(" ");
    page.says("#attacks .marked", "Ban 3 marked…");
    page.push("#attacks .marked button");
    page.says("#ask", "127.0.5.0/24\n127.0.7.0/27\n2001:db8:17::/48");
    assert!(!page.text("#ask").contains("signed in lately"), "{}", page.text("#ask"));
    page.confirm("Ban 3 addresses and networks for 1h?");
    page.says("#said", "3 addresses and networks are banned until");
    page.says("#attacks .networks", "banned until");
    let bans = site.api("/api/v1/bans");
    assert_eq!(bans.as_array().expect("a list").len(), 3, "{bans}");
    assert!(bans.as_array().expect("a list").iter().all(|ban| ban["reason"] == "stuffing on login"), "{bans}");
    assert_eq!((site.browse("127.0.5.9", "/"), site.browse("127.0.9.7", "/")), (403, 200));
    // Who is banned is not asked for again.
    assert_eq!(page.script("return document.querySelectorAll('#attacks input').length"), 2);
    page.says("#entered", "banned until");
}

#[test]
fn the_busiest_clients_are_marked_and_banned_together() {
    let site = Site::start();
    for source in ["127.0.1.8", "127.0.1.9", "127.0.1.10"] {
        for _ in 0..4 {
            site.log_in(source, "alice");
        }
    }
    let page = site.page();
    page.says("#top-marked", "Mark whom to ban");
    for source in ["127.0.1.8", "127.0.1.9"] {
        page.tab_to(&format!("#top-list input[aria-label='Mark {source}']"));
        page.type_text(" ");
    }
    page.push("#top-marked button");
    page.confirm("Ban 2 addresses and networks for 1h?");
    page.says("#bans-list", "127.0.1.8/32");
    page.says("#top-list", "banned until");
    let statuses = ["127.0.1.8", "127.0.1.9", "127.0.1.10"].map(|source| site.browse(source, "/"));
    assert_eq!(statuses, [403, 403, 200]);
}

#[test]
fn the_chart_is_read_with_the_keyboard() {
    let site = Site::start();
    for _ in 0..5 {
        site.log_in("127.0.1.9", "alice");
    }
    let page = site.page();
    page.says("#chart figcaption", "3 passed, 3 of them failed to sign in, 2 denied in this time");
    page.tab_to("#chart .plot");
    let value = || page.script("return document.querySelector('#chart .plot').getAttribute('aria-valuetext')");
    let shown = || page.text("#chart .tip");
    eventually("the cursor stands at now", || value().as_str().is_some_and(|text| text.contains("to now")));
    // Five minutes are the shortest axis: the first bar is before the first request.
    page.press(Key::Home);
    assert!(value().as_str().is_some_and(|text| text.ends_with("Denied 0, Passed 0, of them failed 0")), "{}", value());
    // The requests may stand in two bars.
    let mut sums = [0; 3];
    for step in 0.. {
        assert!(step < 60, "{}", shown());
        page.press(Key::Right);
        let (text, tip) = (value().as_str().expect("a bar").to_owned(), shown());
        for (sum, name) in sums.iter_mut().zip(["Denied", "Passed", "of them failed"]) {
            let (_, rest) = text.split_once(&format!("{name} ")).expect("its number");
            let count = rest.split(',').next().unwrap_or_default();
            assert!(tip.contains(&format!("{name}\n{count}")), "{text}: {tip}");
            *sum += count.parse::<u32>().expect("a number");
        }
        if text.contains("to now") {
            break;
        }
    }
    assert_eq!(sums, [2, 3, 3]);
    page.press(Key::Escape);
    assert_eq!(shown(), "");
}

#[test]
fn quiet_sections_are_one_line_that_opens_on_demand() {
    let site = Site::start();
    let page = site.page();
    page.says("#bans-list", "Nothing is banned.");
    page.says("#entered-list", "✓ Nobody signed in after failures in the last hour");
    let height =
        |id: &str| page.script(&format!("return document.getElementById('{id}').getBoundingClientRect().height"));
    for id in ["top", "requests", "bans", "events", "done", "entered"] {
        eventually("it is one line", || height(id).as_f64().expect("a length") < 64.0);
    }
    assert_eq!(page.text("#top-limit"), "");
    page.push("#top .fold");
    assert_ne!(page.text("#top-limit"), "");
    page.press(Key::Enter);
    assert_eq!(page.text("#top-limit"), "");
}
