//! `portcullis suggest`: whatever one path is spelled like, the routes live with the traffic that they were made from.

use std::collections::BTreeSet;

use crate::suggest::{line, replayed, suggestion};
use crate::support::Folder;

/// Requests of one kind, and how many each client sends in a minute.
struct Traffic {
    request: String,
    per_minute: u32,
    statuses: Vec<u16>,
}

impl Traffic {
    fn new(request: &str, per_minute: u32) -> Self {
        Self { request: request.to_owned(), per_minute, statuses: vec![200] }
    }

    /// The lines of these clients, each with its second.
    fn lines(&self, clients: &[String], minutes: u32) -> Vec<(u32, String)> {
        let mut lines = Vec::new();
        for number in 0..minutes * self.per_minute {
            let second = number * 60 / self.per_minute;
            let status = self.statuses[number as usize % self.statuses.len()];
            lines.extend(clients.iter().map(|client| (second, line(second, client, &self.request, status))));
        }
        lines
    }
}

fn visitors() -> Vec<String> {
    (0..12).map(|number| format!("198.51.100.{number}")).collect()
}

/// The clients that the comments of a suggestion name.
fn named(suggested: &str) -> BTreeSet<&str> {
    let lists = suggested.lines().filter_map(|line| line.split_once("Beyond the rate: ")?.1.split_once(": "));
    let clients = lists.flat_map(|(_, list)| list.split(", ")).filter_map(|one| one.split_once(" ("));
    clients.map(|(client, _)| client).collect()
}

/// Nobody is denied whom the suggestion for this log does not name.
#[track_caller]
fn check_only_the_named_are_denied(folder: &Folder, mut lines: Vec<(u32, String)>) -> String {
    lines.sort_by_key(|(second, _)| *second);
    let suggested = suggestion(folder, &lines.into_iter().map(|(_, line)| line).collect::<String>());
    let report = replayed(folder);
    let named = named(&suggested);
    for one in report["denied"]["top"].as_array().expect("clients") {
        let client = one["client"].as_str().expect("a client");
        assert!(named.contains(client), "{client} is denied and not named: {}\n{suggested}", report["limits"]);
    }
    suggested
}

#[test]
fn a_rare_spelling_does_not_take_the_requests_of_a_busy_path() {
    let folder = Folder::empty();
    for (busy, rare) in [
        ("GET /shop", "GET /index.php/shop"),
        ("GET /shop", "GET /INDEX.PHP/shop"),
        ("GET /shop", "GET /app.php/shop"),
        ("GET /index.php/shop", "GET /shop"),
        ("GET /x.php/page", "GET /x.php"),
        ("GET /zz.php", "GET /a.php/zz.php"),
        ("GET /1", "GET /index.php/2"),
        ("GET /index.php/", "GET /"),
        ("GET /", "GET /index.php"),
        ("POST /login", "POST /index.php/login"),
        ("GET /users/7", "GET /users/7.png"),
        ("GET /account", "GET /Account/;x"),
        ("GET /b?_method=POST", "POST /b"),
    ] {
        let mut lines = Traffic::new(busy, 60).lines(&visitors(), 3);
        lines.extend(Traffic::new(rare, 1).lines(&visitors(), 25));
        let suggested = check_only_the_named_are_denied(&folder, lines);
        assert!(!suggested.contains("Beyond the rate"), "{busy}, {rare}:\n{suggested}");
    }
}

#[test]
fn of_any_spellings_nobody_but_the_named_is_denied() {
    const PATHS: [&str; 20] = [
        "/",
        "/index.php",
        "/index.php/",
        "/login",
        "/Login/",
        "/index.php/login",
        "/a.php/login",
        "/login.php",
        "/login.php/x",
        "/x.php/login.php",
        "/default.aspx",
        "/shop/7",
        "/app.php/shop/8",
        "/shop/index.html",
        "/cgi-bin/login",
        "/cgi-bin/login/x",
        "/shop/7.css",
        "/a/b/c/d/e/f",
        "/a/b.php/c/d/e/f",
        "/login;s=1?_method=PUT",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    let folder = Folder::empty();
    for _ in 0..15 {
        let mut lines = Vec::new();
        for _ in 0..random.usize(2..6) {
            let path = PATHS[random.usize(..PATHS.len())];
            let method = ["GET", "POST", "POST", "HEAD"][random.usize(..4)];
            let count = random.usize(1..4);
            let any_status = || [200, 200, 302, 401, 403, 404, 499][random.usize(..7)];
            let statuses = std::iter::repeat_with(any_status).take(count).collect();
            let traffic = Traffic {
                request: format!("{method} {path}"),
                per_minute: [1, 12, 45, 60][random.usize(..4)],
                statuses,
            };
            lines.extend(traffic.lines(&visitors(), random.u32(2..5)));
            if random.u8(..4) == 0 {
                lines.extend(Traffic { per_minute: 600, ..traffic }.lines(&["203.0.113.66".to_owned()], 2));
            }
        }
        check_only_the_named_are_denied(&folder, lines);
    }
}

#[test]
fn a_login_in_progress_has_room_beside_those_that_failed() {
    let folder = Folder::empty();
    let visits = (0..12).map(|number| (0, line(0, &format!("198.51.100.{number}"), "POST /login", 401)));
    // Ten failures on each side of the full hour, then one that knows the password.
    let failures = (3540..3660).step_by(6).map(|second| (second, line(second, "203.0.113.9", "POST /login", 401)));
    let success = (3670, line(3670, "203.0.113.9", "POST /login", 302));
    let suggested = check_only_the_named_are_denied(&folder, visits.chain(failures).chain([success]).collect());
    assert!(suggested.contains("post-login-failures"), "{suggested}");
    // An office whose people log in at the same time, at an application that takes five seconds.
    let together = (0..40).map(|number| {
        let status = if number == 0 { 401 } else { 302 };
        (
            number,
            format!(
                "203.0.113.9:{} [06/Feb/2009:12:00:00.{number:03}] fe be/s 0/0/0/5000/5000 {status} 1 - - ---- 1/1/1/1/0 0/0 \"POST /login HTTP/1.1\"\n",
                4000 + number
            ),
        )
    });
    let suggested = check_only_the_named_are_denied(&folder, together.collect());
    assert!(suggested.contains("post-login-failures"), "{suggested}");
}
