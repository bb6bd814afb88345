//! `portcullis suggest`.

use std::fmt::Write;

use serde_json::Value;

use crate::support::Folder;

/// A line of the combined format, so many seconds after noon.
pub(crate) fn line(second: u32, client: &str, request: &str, status: u16) -> String {
    let (hour, minute, second) = (12 + second / 3600, second / 60 % 60, second % 60);
    format!(
        "{client} - - [21/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000] \"{request} HTTP/1.1\" {status} 612 \"-\" \"-\"\n"
    )
}

/// Visitors for four hours, in the order of time.
fn visits() -> Vec<(u32, String)> {
    let mut visits = Vec::new();
    for visitor in 0..30_u32 {
        let client = format!("198.51.100.{visitor}");
        for visit in 0..20 {
            let second = visitor * 7 + visit * 700;
            let mut add = |after: u32, request: &str, status| {
                visits.push((second + after, line(second + after, &client, request, status)));
            };
            add(0, "GET /", 200);
            add(1, "GET /style.css", 200);
            add(2, &format!("GET /users/{}?tab=posts", visitor * 1000 + visit), 200);
            add(3, &format!("HEAD /Users/{visit}/"), 200);
            if visit % 5 == 0 {
                add(4, "POST /account/login", if visit % 10 == 0 { 401 } else { 302 });
            }
        }
    }
    visits
}

fn text(mut visits: Vec<(u32, String)>) -> String {
    visits.sort();
    visits.into_iter().map(|(_, line)| line).collect()
}

/// The suggestion for a log, which passes `check` without a warning.
#[track_caller]
pub(crate) fn suggestion(folder: &Folder, log: &str) -> String {
    folder.write("access.log", log);
    let suggested = folder.run(&["suggest", "access.log"]);
    assert_eq!((suggested.code, suggested.stderr.as_str()), (Some(0), ""), "{suggested:?}");
    folder.write("suggested.yaml", &suggested.stdout);
    let checked = folder.run(&["check", "--deny-warnings", "-c", "suggested.yaml"]);
    assert_eq!(checked.code, Some(0), "{}\n{}", suggested.stdout, checked.stdout);
    suggested.stdout
}

pub(crate) fn replayed(folder: &Folder) -> Value {
    let report = folder.run(&["replay", "--format", "json", "-c", "suggested.yaml", "access.log"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    report.json()
}

#[test]
fn the_traffic_would_have_lived_with_what_is_suggested() {
    let folder = Folder::empty();
    let suggested = suggestion(&folder, &text(visits()));
    for expected in [
        "upstream: http://127.0.0.1:8000    # replace it by the address of your application",
        "of 30 clients, 2026-11-21 12:00 to 2026-11-21 15:45 UTC (combined)",
        "path: \"/\"",
        "path: \"/users/{id}\"",
        "match: {methods: [POST], path: \"/account/login\"}",
        "It is a login by its name (`login`).",
        "50 % 401 or 403, 50 % redirects",
        "outcome: {failure: {status: [401, 403]}}",
        "99 of 100 clients at most",
    ] {
        assert!(suggested.contains(expected), "no `{expected}` in\n{suggested}");
    }
    assert!(!suggested.contains(".css"), "{suggested}");
    let report = replayed(&folder);
    assert_eq!(report["decisions"], serde_json::json!({"allowed": 2520}), "{suggested}");
    let users = report["routes"].as_array().expect("routes").iter().find(|route| route["name"] == "get-users-id");
    assert_eq!(users.expect("the route of users")["requests"], 1200, "{suggested}");
}

#[test]
fn an_attack_in_the_log_is_named_and_not_allowed_for() {
    let folder = Folder::empty();
    let mut visits = visits();
    for guess in 0..3000 {
        visits.push((3600 + guess / 5, line(3600 + guess / 5, "203.0.113.66", "POST /account/login", 401)));
    }
    let suggested = suggestion(&folder, &text(visits));
    assert!(suggested.contains("203.0.113.66 (300)"), "{suggested}");
    let report = replayed(&folder);
    let denied = &report["denied"];
    assert_eq!(denied["clients"], 1, "{report}");
    assert_eq!(denied["top"][0]["client"], "203.0.113.66");
    assert!(denied["count"].as_u64().is_some_and(|count| count > 2900), "{report}");
}

#[test]
fn a_login_is_told_by_its_refusals_too_and_a_form_by_what_it_shows_again() {
    let folder = Folder::empty();
    let mut log = String::new();
    for visit in 0..40 {
        log += &line(visit, &format!("198.51.100.{visit}"), "POST /enter", if visit % 3 == 0 { 403 } else { 200 });
        log +=
            &line(visit, &format!("198.51.100.{visit}"), "POST /my-login.php", if visit % 3 == 0 { 200 } else { 302 });
        log += &line(visit, &format!("198.51.100.{visit}"), "POST /xmlrpc.php", 200);
    }
    let suggested = suggestion(&folder, &log);
    assert!(suggested.contains("like a login: 35 % were answered with 401 or 403"), "{suggested}");
    assert!(suggested.contains("name: post-my-login-php-failures"), "{suggested}");
    assert!(suggested.contains("The statuses do not tell a failure"), "{suggested}");
    assert!(
        !suggested.contains("/hour}") || !suggested.contains("per-client, key: client_ip, rate: 30/minute; "),
        "{suggested}"
    );
}

#[test]
fn any_log_becomes_a_configuration_that_passes_check() {
    let folder = Folder::empty();
    suggestion(&folder, &line(0, "198.51.100.7", "GET /", 200));
    suggestion(&folder, &line(0, "2001:db8::7", "CONNECT a:443", 400));
    // What clients send never becomes a key, a glob, a variable, or the end of a comment.
    let mut hostile = String::new();
    for (second, path) in [
        "/a%0Alimits:%20x",
        "/${HOME}/*",
        "/{id}/{id}",
        "/a\"b: c#d",
        "/%2e%2e/x",
        "/login*?x",
        "/\\xc3\\xa4",
        "/index.php/login",
        "//evil.example/login",
        "/a;b/login",
        "http://example.com/login",
        "/login/%00/x",
        "/*/login",
        "/~user/login",
    ]
    .into_iter()
    .cycle()
    .take(1400)
    .enumerate()
    {
        let second = u32::try_from(second).expect("few");
        let method = ["GET", "POST", "PATCH", "M-SEARCH", "!#$%&'*+.^_`|~"][second as usize % 5];
        write!(hostile, "{}", line(second, "198.51.100.7", &format!("{method} {path}"), 200)).expect("a string");
    }
    suggestion(&folder, &hostile);
    // Many values in one place.
    let mut many = String::new();
    for number in 0..3000_u32 {
        let name: String = (0..4)
            .map(|digit| char::from(b'a' + u8::try_from(number / 7_u32.pow(digit) % 7).expect("small")))
            .collect();
        many += &line(number, &format!("198.51.{}.{}", number % 3, number % 200), &format!("GET /tags/{name}/x"), 200);
    }
    assert!(suggestion(&folder, &many).contains("path: \"/tags/{id}/x\""));
}

#[test]
fn a_log_that_cannot_be_read_is_an_error() {
    let folder = Folder::empty();
    folder.write("nonsense.log", "nonsense\n");
    let ended = folder.run(&["suggest", "nonsense.log"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains("nonsense.log:1: "), "{ended:?}");
}

/// Visitors of an application below a prefix, who log in at this path.
fn with_logins(login: &str, statuses: [u16; 2]) -> Vec<(u32, String)> {
    let mut visits = visits();
    for visitor in 0..20_u32 {
        let second = 60 + visitor * 90;
        let client = format!("198.51.100.{visitor}");
        for (attempt, status) in (0..).zip(statuses) {
            let second = second + attempt * 20;
            visits.push((second, line(second, &client, &format!("POST {login}"), status)));
        }
    }
    visits
}

#[test]
fn the_recipe_of_an_application_that_is_known_comes_first_and_is_named() {
    let folder = Folder::empty();
    for (login, recipe, route) in [
        ("/wp-login.php", "portcullis recipe wordpress\n", "match: POST /wp-login.php"),
        ("/blog/wp-login.php", "portcullis recipe wordpress --prefix /blog\n", "match: POST /blog/wp-login.php"),
        ("/accounts/login/?next=/", "portcullis recipe django\n", "match: POST /accounts/login\n"),
        ("/x/admin/login/", "portcullis recipe django --prefix /x\n", "match: POST /x/admin/login\n"),
        ("/phpmyadmin/index.php?route=/", "portcullis recipe phpmyadmin\n", "match: POST /phpmyadmin/*"),
        ("/wiki/doku.php?do=login", "portcullis recipe dokuwiki --prefix /wiki\n", "match: POST /wiki/*"),
    ] {
        let suggested = suggestion(&folder, &text(with_logins(login, [200, 302])));
        assert!(suggested.contains(recipe) && suggested.contains(route), "{login}: {suggested}");
        // The other routes of the traffic are there too.
        assert!(suggested.contains("path: \"/users/{id}\""), "{login}: {suggested}");
        assert!(!suggested.contains("post-wp-login-php"), "{login}: {suggested}");
    }
    // Where nobody gets in there is no such application: scanners ask everywhere.
    let scanned = suggestion(&folder, &text(with_logins("/wp-login.php", [200, 200])));
    assert!(!scanned.contains("portcullis recipe"), "{scanned}");
    let both = [with_logins("/wp-login.php", [302, 302]), with_logins("/db/phpmyadmin/index.php", [200, 302])].concat();
    let both = suggestion(&folder, &text(both));
    assert!(both.contains("another application too: portcullis recipe phpmyadmin --prefix /db\n"), "{both}");
}

/// The rates of a suggestion, by the limit and the place among its rates.
fn rates(suggested: &str) -> Vec<(String, f64)> {
    let limits = suggested.lines().filter_map(|line| line.trim().strip_prefix("- {name: ")?.split_once(", "));
    let mut rates = Vec::new();
    for (name, rest) in limits {
        let Some((_, rate)) = rest.split_once("rate: ") else { continue };
        let rate = rate.split([',', '}']).next().expect("a rate");
        for (place, rate) in rate.split("; ").enumerate() {
            let count = rate.split('/').next().and_then(|count| count.parse().ok()).expect("a number");
            rates.push((format!("{name} {place}"), count));
        }
    }
    rates
}

/// How a tenth of the clients attack: requests, each with its status and how many seconds stand between.
struct Attack {
    name: &'static str,
    request: fn(u32) -> String,
    status: u16,
    every: u32,
    count: u32,
}

const ATTACKS: [Attack; 7] = [
    Attack { name: "guessing", request: |_| "POST /account/login".to_owned(), status: 401, every: 1, count: 600 },
    Attack { name: "slowly", request: |_| "POST /account/login".to_owned(), status: 401, every: 300, count: 40 },
    Attack { name: "spraying", request: |_| "POST /account/login".to_owned(), status: 401, every: 3000, count: 1 },
    Attack { name: "a flood", request: |_| "GET /".to_owned(), status: 200, every: 0, count: 1500 },
    Attack { name: "scraping", request: |n| format!("GET /users/{n}"), status: 200, every: 3, count: 2000 },
    Attack { name: "scanning", request: |n| format!("GET /x{n}.php"), status: 404, every: 1, count: 300 },
    Attack { name: "another form", request: |_| "POST /wp-login.php".to_owned(), status: 404, every: 2, count: 200 },
];

#[test]
fn a_tenth_of_the_clients_that_attacks_moves_no_rate_by_more_than_a_tenth() {
    let folder = Folder::empty();
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..3 {
        let mut ordinary: Vec<(u32, String)> = Vec::new();
        for visitor in 0..90_u32 {
            let client = format!("198.51.100.{visitor}");
            for _ in 0..random.u32(3..12) {
                let mut second = random.u32(0..14_000);
                let mut add = |request: &str, status: u16| {
                    second += random.u32(1..8);
                    ordinary.push((second, line(second, &client, request, status)));
                };
                add("GET /", 200);
                for page in 0..visitor % 9 {
                    add(&format!("GET /users/{page}"), 200);
                }
                if visitor % 3 == 0 {
                    if visitor % 12 == 0 {
                        add("POST /account/login", 401);
                    }
                    add("POST /account/login", 302);
                }
            }
        }
        let before = rates(&suggestion(&folder, &text(ordinary.clone())));
        assert!(before.len() >= 8, "{before:?}");
        for Attack { name, request, status, every, count } in ATTACKS {
            let mut attacked = ordinary.clone();
            for attacker in 0..10_u32 {
                let client = format!("203.0.113.{attacker}");
                let start = random.u32(0..600);
                attacked.extend((0..count).map(|number| {
                    let second = start + number * every;
                    (second, line(second, &client, &request(number), status))
                }));
            }
            let after = rates(&suggestion(&folder, &text(attacked)));
            for (limit, rate) in &before {
                let now = after.iter().find(|(name, _)| name == limit).map(|(_, rate)| rate / *rate);
                assert!(
                    now.is_some_and(|share| (0.9..=1.1).contains(&share)),
                    "{name}: {limit}: {rate} becomes {now:?}"
                );
            }
        }
    }
}
