//! What the page shows is what the API says.

use fantoccini::key::Key;
use serde_json::Value;

use crate::site::Site;
use crate::support::eventually;

/// The sum of a series of the history.
fn sum(history: &Value, kind: &str, name: &str, decision: &str) -> u64 {
    let values = history[kind][name][decision].as_array().expect("a series");
    values.iter().map(|value| value.as_u64().expect("a count")).sum()
}

#[test]
fn it_shows_what_the_api_says_while_an_attack_runs() {
    let site = Site::start();
    let page = site.page();
    page.says("#verdict-sentence", "No request came");
    for number in 0..140 {
        let source = format!("127.0.1.{}", number % 7 + 1);
        site.log_in(&source, "alice");
        site.browse("127.0.2.1", "/shop");
    }
    page.says("#verdict-sentence", "Under attack");
    page.says("#verdict-sentence", "login-pace");
    assert!(page.title().starts_with("✕ under attack"), "{}", page.title());
    let shown = |root: &str, name: &str, column: usize| {
        let rows = page.rows(root);
        rows.iter().find(|row| row[0] == name).map_or(String::new(), |row| row[column].clone())
    };
    eventually("the page shows the counts of the API", || {
        let history = site.api("/api/v1/history?minutes=60");
        let count = |kind: &str, name: &str, decision: &str| sum(&history, kind, name, decision).to_string();
        shown("#routes", "login", 3) == count("routes", "login", "allowed")
            && shown("#routes", "login", 4) == count("routes", "login", "denied")
            && shown("#routes", "on no route", 3) == count("routes", "-", "allowed")
            && shown("#limits", "login-pace", 4) == count("limits", "login-pace", "denied")
    });
    assert_eq!(shown("#routes", "login", 4), "119");
    page.says("#chart figcaption", "161 passed, 21 of them failed to sign in, 119 denied in this time");
    page.says("#figure-denied", "119 in 1 hour");
    page.says("#figure-passed", "161 in 1 hour");
    page.says("#figure-failed", "21 in 1 hour");
    // Each client is one line, however often it was denied.
    page.says("#events-list", "denied 127.0.1.1 17 times");
    // Who is behind it, and why.
    let top = site.api("/api/v1/top");
    page.says("#top-list", &format!("client_ip {}", top[0]["key"]["client_ip"].as_str().expect("an address")));
    assert!(page.rows("#top-list").iter().all(|row| row[1] == "17"), "{:?}", page.rows("#top-list"));
    let newest = &site.api("/api/v1/requests?n=1")[0];
    page.says("#requests-list", newest["id"].as_str().expect("an id"));
    let bars = page.script("return document.querySelector('#routes svg').getAttribute('aria-label')");
    assert!(bars.as_str().expect("a text").contains("119 denied in this time"), "{bars}");
}

#[test]
fn advice_is_shown_with_the_line_to_write_and_leaves_the_verdict_alone() {
    let site = Site::with_doubtful_outcome();
    let page = site.page();
    let advice = site.api("/api/v1/advice");
    for one in advice.as_array().expect("a list") {
        page.says("#advice-list", one["message"].as_str().expect("a message"));
        page.says("#advice-list", one["help"].as_str().expect("a line to write"));
    }
    page.says("#facts", "`check` has 1 warning: see the advice.");
    page.says("#verdict-sentence", "All is well.");
}

#[test]
fn a_request_is_found_by_its_id_with_the_keyboard() {
    let site = Site::start();
    for _ in 0..4 {
        site.log_in("127.0.1.9", "alice");
    }
    let page = site.page();
    page.says("#requests-list", "127.0.1.9");
    let story = &site.api("/api/v1/requests?n=1")[0];
    page.fill("#request-id", "no-such-id");
    page.press(Key::Enter);
    page.says("#request-error", "no request of that id");
    page.write(story["id"].as_str().expect("an id"));
    page.press(Key::Enter);
    page.says("#story-sentence", story["sentence"].as_str().expect("a sentence"));
    page.says("#story", "login-pace for client_ip 127.0.1.9: denied; 3 counted of 3 in 60 min");

    // From the story to the ban of its client.
    page.push("#story button");
    page.press(Key::Enter);
    page.says("#ask", "Ban 127.0.1.9 for 1h?");
    page.press(Key::Escape);

    // Only requests of a client, and of a limit's keys.
    page.fill("#requests-client", "127.0.1.8");
    page.press(Key::Tab);
    page.says("#requests-list", "This gateway has denied or held no request like that.");
    page.fill("#requests-client", "nonsense");
    page.press(Key::Tab);
    page.says("#requests-error", "client");
    page.tab_to("#top-limit");
    page.type_text("keys of login-pace");
    page.says("#top-list", "See");
    page.push("#top-list button");
    page.says("#standing", "Denied now: client_ip 127.0.1.9 under login-pace.");
}

#[test]
fn a_client_that_is_counted_by_its_network_leads_to_its_key() {
    let site = Site::on("[::1]:0");
    for _ in 0..4 {
        site.log_in("::1", "alice");
    }
    let page = site.page();
    page.tab_to("#top-limit");
    page.type_text("keys of login-pace");
    page.says("#top-list", "client_ip ::/64");
    page.push("#top-list button");
    page.says("#standing", "Denied now: client_ip :: under login-pace.");
    page.push("#standing button + button");
    page.push("#ban-form button[type=submit]");
    page.confirm("Ban client_ip :: of login-pace for 1h?");
    page.says("#bans-list", "login-pace");
}

#[test]
fn markup_in_what_clients_and_operators_write_is_shown_as_text() {
    let site = Site::that_counts_programs();
    let evil = "<img src=x onerror=alert(1)><b>bold</b>";
    let ban = |body: &str| {
        let request = site.gateway.admin_request("POST", "/api/v1/bans").json(body);
        assert_eq!(request.status(), 201, "{body}");
    };
    ban(&format!(r#"{{"address": "198.51.100.7", "for": "1h", "reason": "{evil}"}}"#));
    ban(&format!(r#"{{"limit": "login-name", "key": {{"param.username": "{evil}"}}, "for": "1h"}}"#));
    let page = site.page();
    page.says("#bans-list", evil);
    page.says("#bans-list", &format!("param.username {evil}"));
    for _ in 0..4 {
        site.gateway.post("/login?<b>").from("127.0.1.1").form("username=<b>bold</b>&password=x").status();
    }
    page.says("#requests-list", "127.0.1.1");
    page.push("#requests-list button");
    page.says("#story-sentence", "127.0.1.1");
    let search = || site.gateway.get("/search/<b>found</b>").from("127.0.1.2").header("User-Agent", evil).status();
    assert_eq!([search(), search()], [200, 429]);
    page.says("#requests-list", "/search/<b>found</b>");
    page.push("#requests-list button");
    page.says("#story", "/search/<b>found</b>");
    assert_eq!(page.script("return document.querySelectorAll('main img, main td b, #story b').length"), 0);
    assert_eq!(page.console(), Vec::<String>::new());
}
