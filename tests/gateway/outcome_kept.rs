//! What a success clears: a client's own login buys no guesses at another account.

use crate::support::{Answer, Gateway, Origin, Request};

/// Checks the password of the user name that it reads first, or last: applications differ in that.
fn application(reads_last: bool) -> Origin {
    Origin::answering(move |received| {
        let text = received.text();
        let fields: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        let query = received.target.split_once('?').map_or("", |(_, query)| query).as_bytes();
        let names: Vec<(String, String)> =
            form_urlencoded::parse(query).into_owned().chain(fields.iter().cloned()).collect();
        let mut names = names.iter().filter(|(name, _)| name == "username").map(|(_, value)| value.as_str());
        let name = if reads_last { names.next_back() } else { names.next() }.unwrap_or_default();
        let is_right = fields.contains(&("password".to_owned(), format!("of-{name}")));
        if is_right { Answer::new(302, &[("Location", "/account")], "") } else { Answer::new(401, &[], "wrong") }
    })
}

fn guarded(origin: &Origin, limits: &[&str]) -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nroutes:\n  - name: login\n    match: POST /login\n    outcome: {{success: {{status: 302}}}}\n    \
         known_clients: {{of: param.username, remember: 5, for: 90d}}\n    limits:\n      - {{count: failures, {}}}\n",
        origin.url(),
        limits.join("}\n      - {count: failures, ")
    ))
}

fn attempt(gateway: &Gateway, name: &str, password: &str) -> Request {
    gateway.post("/login").form(&format!("username={name}&password={password}"))
}

fn own(gateway: &Gateway) -> u16 {
    attempt(gateway, "mallory", "of-mallory").status()
}

fn guess(gateway: &Gateway, name: &str) -> u16 {
    attempt(gateway, name, "guess").status()
}

#[test]
fn logins_of_ones_own_between_guesses_clear_nothing_that_counts_by_client() {
    let origin = application(true);
    let gateway = guarded(&origin, &["name: client, key: client_ip, rate: 4/hour"]);
    let mut statuses = Vec::new();
    for number in 0..6 {
        statuses.extend([own(&gateway), guess(&gateway, &format!("victim-{number}"))]);
    }
    assert_eq!(statuses, [302, 401, 302, 401, 302, 401, 302, 401, 429, 429, 429, 429]);
    assert_eq!(origin.count(), 8);
}

#[test]
fn a_success_clears_its_own_key_and_not_its_neighbours() {
    let origin = application(true);
    let pair = "name: pair, key: [client_ip, param.username], rate: 3/hour, reset_on: success";
    let total = "name: client, key: client_ip, rate: 8/hour";
    let gateway = guarded(&origin, &[pair, total]);
    assert_eq!([guess(&gateway, "victim"), guess(&gateway, "victim")], [401; 2]);
    assert_eq!([guess(&gateway, "mallory"), guess(&gateway, "mallory"), own(&gateway)], [401, 401, 302]);
    assert_eq!([guess(&gateway, "victim"), guess(&gateway, "victim"), own(&gateway)], [401, 429, 302]);
    assert_eq!([guess(&gateway, "mallory"), guess(&gateway, "mallory"), own(&gateway)], [401, 401, 302]);
    // Seven by this client, whatever it cleared of its own name.
    assert_eq!([guess(&gateway, "other"), guess(&gateway, "another"), own(&gateway)], [401, 429, 429]);
}

#[test]
fn a_success_of_a_request_that_names_two_users_clears_neither_and_makes_nobody_known() {
    let both = [
        ("/login", "username=mallory&username=victim", false),
        ("/login", "username=victim&username=mallory", true),
        ("/login?username=mallory", "username=victim", false),
        ("/login?username=victim", "username=mallory", true),
    ];
    for (target, names, reads_last) in both {
        let origin = application(reads_last);
        let name = "name: user, key: param.username, rate: 3/hour, reset_on: success, unless: [known_client]";
        let gateway = guarded(&origin, &[name]);
        let log_in_as_both = || gateway.post(target).form(&format!("{names}&password=of-mallory")).status();
        for user in ["victim", "mallory"] {
            assert_eq!([guess(&gateway, user), guess(&gateway, user)], [401; 2], "{target} {names}");
        }
        assert_eq!(log_in_as_both(), 302, "{target} {names}");
        for user in ["victim", "mallory"] {
            assert_eq!([guess(&gateway, user), guess(&gateway, user)], [401, 429], "{user}: {target} {names}");
            assert_eq!(attempt(&gateway, user, &format!("of-{user}")).status(), 429, "{user} is a stranger");
        }
    }
}

#[test]
fn whoever_is_known_for_one_of_two_users_is_a_stranger_to_both_together() {
    let origin = application(false);
    let name = "name: user, key: param.username, rate: 3/hour, unless: [known_client]";
    let gateway = guarded(&origin, &[name]);
    assert_eq!(own(&gateway), 302);
    let statuses: Vec<u16> = (0..4).map(|_| guess(&gateway, "victim")).collect();
    assert_eq!(statuses, [401, 401, 401, 429]);
    assert_eq!(own(&gateway), 302, "known for one");
    for names in ["username=mallory&username=victim", "username=victim&username=mallory"] {
        assert_eq!(gateway.post("/login").form(&format!("{names}&password=of-mallory")).status(), 429, "{names}");
    }
    assert_eq!(origin.count(), 5);
}

#[test]
fn a_success_under_another_spelling_clears_no_failures_of_a_name() {
    // To this application `mal.lory` and `mallory` are two people.
    for (victim, own) in [("mallory", "mal.lory"), ("mal.lory", "mallory"), ("m-allory", "mal.lory")] {
        let origin = application(true);
        let gateway =
            guarded(&origin, &["name: user, key: {param.username: {fold: letters}}, rate: 3/hour, reset_on: success"]);
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(guess(&gateway, victim));
            attempt(&gateway, own, &format!("of-{own}")).status();
        }
        assert_eq!(statuses, [401, 401, 401, 429], "{victim} {own}");
    }
}

#[test]
fn a_success_clears_the_failures_of_every_spelling_where_the_name_is_its_own() {
    let origin = application(true);
    let gateway =
        guarded(&origin, &["name: user, key: {param.username: {fold: letters}}, rate: 3/hour, reset_on: success"]);
    assert_eq!([guess(&gateway, "MALLORY"), guess(&gateway, "mallory"), own(&gateway)], [401, 401, 302]);
    assert_eq!([guess(&gateway, "mallory"), guess(&gateway, "Mallory"), own(&gateway)], [401, 401, 302]);
    assert_eq!([guess(&gateway, "%3Cb%3Emallory"), guess(&gateway, "mal-lory")], [401, 401]);
    assert_eq!([guess(&gateway, "mallory"), guess(&gateway, "mallory")], [401, 429]);
}

#[test]
fn a_known_client_is_known_for_a_name_on_its_host_alone() {
    let origin = application(true);
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - name: login\n    match: POST /login\n    outcome: {{success: {{status: 302}}}}\n    \
         known_clients: {{of: [host, {{param.username: {{fold: letters}}}}]}}\n    limits:\n      \
         - {{name: all, key: [], rate: 2/hour, unless: [known_client]}}\n",
        origin.url(),
    ));
    let on = |host: &str, name: &str| attempt(&gateway, name, "guess").host(host).status();
    assert_eq!(attempt(&gateway, "mal-lory", "of-mal-lory").host("a.example").status(), 302);
    assert_eq!([on("a.example", "mal-lory"), on("a.example", "Mallory"), on("a.example", "mal-lory")], [401; 3]);
    assert_eq!([on("b.example", "mal-lory"), on("b.example", "mal-lory")], [401, 429]);
    assert_eq!([on("a.example", "%3Cb%3Emallory"), on("a.example", "mallory")], [429, 401]);
}

/// A client with a session is redirected if its request has no user name, as by blogs and wikis.
fn application_with_sessions() -> Origin {
    Origin::answering(|received| {
        let has_session = received.headers.get("cookie") == Some("session=of-mallory");
        if has_session { Answer::new(302, &[], "") } else { Answer::new(401, &[], "wrong") }
    })
}

#[test]
fn a_success_under_a_name_that_the_application_may_not_read_clears_nothing_and_makes_nobody_known() {
    let origin = application_with_sessions();
    let name = "name: user, key: param.username, rate: 3/hour, reset_on: success, unless: [known_client]";
    let gateway = guarded(&origin, &[name]);
    assert_eq!([guess(&gateway, "victim"), guess(&gateway, "victim")], [401; 2]);
    let request = gateway.post("/login").header("Cookie", "session=of-mallory").form("USERNAME=victim");
    assert_eq!(request.status(), 302);
    assert_eq!([guess(&gateway, "victim"), guess(&gateway, "victim")], [401, 429]);
}

#[test]
fn a_success_of_one_address_is_not_credited_to_everybody_of_that_name() {
    let origin = application_with_sessions();
    let name = "name: user, key: {param.username: {normalise: local_part}}, rate: 3/hour, reset_on: success, unless: [known_client]";
    let gateway = guarded(&origin, &[name]);
    let succeed = |name: &str| {
        gateway.post("/login").header("Cookie", "session=of-mallory").form(&format!("username={name}")).status()
    };
    assert_eq!([guess(&gateway, "alice"), guess(&gateway, "alice@example.com")], [401; 2]);
    assert_eq!(succeed("alice@elsewhere.example"), 302);
    assert_eq!([guess(&gateway, "alice"), guess(&gateway, "alice")], [401, 429]);
    assert_eq!(
        [guess(&gateway, "bob@example.com"), guess(&gateway, "bob@example.com"), succeed("bob")],
        [401, 401, 302]
    );
    assert_eq!([guess(&gateway, "bob"), guess(&gateway, "bob"), guess(&gateway, "bob")], [401; 3]);
}
