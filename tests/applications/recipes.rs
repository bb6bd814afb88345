//! The recipes of `config/`, each in front of the application it is for.

use std::thread;

use crate::browser::Browser;
use crate::django::Django;
use crate::forms::{PASSWORD, forms};
use crate::served::Served;
use crate::support::{Folder, Gateway, Stopwatch, eventually, recipe, solve};

/// The status that a login gets: from this address, by this name.
fn log_in(gateway: &Gateway, from: &str, name: &str, password: &str) -> u16 {
    log_in_at(gateway, "/login", from, name, password)
}

fn log_in_at(gateway: &Gateway, target: &str, from: &str, name: &str, password: &str) -> u16 {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs([("username", name), ("password", password)]);
    gateway.post(target).from(from).form(&form.finish()).send().status
}

fn login(application: &Served) -> Gateway {
    recipe("login.yaml", application.address(), &[])
}

#[test]
fn five_failures_from_one_address_are_the_last() {
    let application = forms();
    let gateway = login(&application);
    let guess = |number: usize| log_in(&gateway, "127.0.0.9", &format!("name-{number}"), "guess");
    let statuses: Vec<u16> = (0..12).map(guess).collect();
    assert_eq!((statuses[..5].to_vec(), statuses[5..].to_vec()), (vec![200; 5], vec![429; 7]));
    assert_eq!(log_in(&gateway, "127.0.0.10", "alice", PASSWORD), 302);
    assert_eq!(application.logged("attempt redirect name-").len(), 5);
}

#[test]
fn ten_failures_a_minute_for_one_name_are_the_last_and_its_owner_gets_in() {
    let application = forms();
    let gateway = login(&application);
    assert_eq!(log_in(&gateway, "127.0.0.5", "alice", PASSWORD), 302);
    let guess = |client: usize| log_in(&gateway, &format!("127.0.1.{client}"), "alice", "guess");
    let statuses: Vec<u16> = (1..=12).map(guess).collect();
    assert_eq!((statuses[..10].to_vec(), statuses[10..].to_vec()), (vec![200; 10], vec![429; 2]));
    assert_eq!(log_in(&gateway, "127.0.2.1", "alice", PASSWORD), 429, "a stranger, whatever it knows");
    assert_eq!(log_in(&gateway, "127.0.0.5", "alice", PASSWORD), 302, "the owner is known");
}

#[test]
fn the_last_five_addresses_that_succeeded_are_known() {
    let application = forms();
    let gateway = login(&application);
    for client in 1..=6 {
        assert_eq!(log_in(&gateway, &format!("127.0.0.{client}"), "alice", PASSWORD), 302);
    }
    for client in 1..=10 {
        log_in(&gateway, &format!("127.0.1.{client}"), "alice", "guess");
    }
    let known = |client: usize| log_in(&gateway, &format!("127.0.0.{client}"), "alice", PASSWORD) == 302;
    assert!(!known(1), "five others succeeded after it");
    assert!((2..=6).all(known));
}

#[test]
fn after_three_failures_the_next_takes_twenty_seconds_and_a_success_clears() {
    let application = forms();
    let gateway = login(&application);
    let took = |password: &str| {
        let begun = Stopwatch::start();
        let status = log_in(&gateway, "127.0.0.9", "alice", password);
        (status, begun.elapsed().as_secs())
    };
    for _ in 0..3 {
        assert_eq!(took("guess"), (200, 0));
    }
    let (status, seconds) = took(PASSWORD);
    assert!(status == 302 && (20..25).contains(&seconds), "{status} after {seconds} s");
    assert_eq!(took("guess"), (200, 0), "cleared");
}

#[test]
fn a_crowd_is_slowed_down_and_then_challenged_except_for_those_who_are_known() {
    let application = forms();
    let fewer = [("rate: 300/minute", "rate: 60/minute")];
    let gateway = recipe("login.yaml", application.address(), &fewer);
    assert_eq!(log_in(&gateway, "127.0.0.5", "alice", PASSWORD), 302);
    // Each from a network of its own.
    let guess = |number: usize| log_in(&gateway, &format!("127.1.{number}.1"), &format!("name-{number}"), "guess");
    for number in 0..50 {
        let begun = Stopwatch::start();
        assert_eq!(guess(number), 200);
        assert!(begun.elapsed().as_secs() < 2, "no request waits yet");
    }
    let delayed = Stopwatch::start();
    assert_eq!(guess(50), 200);
    assert!(delayed.elapsed().as_secs() >= 2, "from then on they wait");
    let statuses: Vec<u16> = thread::scope(|scope| {
        let guesses: Vec<_> = (51..80).map(|number| scope.spawn(move || guess(number))).collect();
        guesses.into_iter().map(|guess| guess.join().expect("a guess does not panic")).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 9, "60 in all");
    assert_eq!(log_in(&gateway, "127.0.0.5", "alice", PASSWORD), 302, "the owner is known");
    // Anybody else has to let the browser work for it.
    let form = gateway
        .post("/login")
        .from("127.0.9.1")
        .header("Accept", "text/html")
        .form("username=bob&password=correct+horse");
    let page = form.send();
    assert_eq!(page.status, 429);
    let proof = solve(&page);
    assert_eq!(form.header("Cookie", &format!("portcullis_pow={proof}")).send().status, 302);
}

#[test]
fn a_name_tried_from_more_than_two_new_addresses_is_marked_in_the_log() {
    let application = forms();
    let gateway = login(&application);
    for client in 1..=4 {
        assert_eq!(log_in(&gateway, &format!("127.0.0.{client}"), "alice", "guess"), 200);
    }
    eventually("every request is logged", || gateway.stdout().len() >= 4);
    let mut marked = gateway.stdout();
    marked.retain(|line| line.contains("\"shadow\":[\"login-new-addresses\"]"));
    let from = |client: &str| marked.iter().any(|line| line.contains(&format!("\"client\":\"127.0.0.{client}\"")));
    assert_eq!(["1", "2", "3", "4"].map(from), [false, false, true, true], "{marked:?}");
}

#[test]
fn an_admin_login_of_django_stops_guessing_and_lets_the_owner_in() {
    let django = Django::start();
    let gateway = recipe("login-django.yaml", django.address(), &[]);
    let mut owner = Browser::at(&gateway, "127.0.0.5");
    assert_eq!(owner.log_in("alice", PASSWORD).status, 302);
    let guess = |client: u8| Browser::at(&gateway, &format!("127.0.1.{client}")).log_in("alice", "guess").status;
    let statuses: Vec<u16> = (1..=7).map(guess).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429]);
    assert_eq!(Browser::at(&gateway, "127.0.0.5").log_in("alice", PASSWORD).status, 302, "the owner is known");
}

#[test]
fn below_a_prefix_the_printed_recipe_stops_guessing_and_lets_the_owner_in() {
    let django = Django::start();
    let upstream = format!("http://{}", django.address());
    let printed = Folder::empty().run(&["recipe", "django", "--prefix", "/intranet", "--upstream", &upstream]);
    let gateway = Gateway::with_files(printed.stdout.replace("0.0.0.0:8080", "127.0.0.1:0"), &[]);
    let log_in = |client: &str, password: &str| {
        let fields = [("username", "alice"), ("password", password), ("next", "/intranet/admin/")];
        Browser::at(&gateway, client).submit("/intranet/admin/login/", &fields).status
    };
    assert_eq!(log_in("127.0.0.5", PASSWORD), 302);
    let statuses: Vec<u16> = (1..=7).map(|client| log_in(&format!("127.0.1.{client}"), "guess")).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429]);
    assert_eq!(log_in("127.0.0.5", PASSWORD), 302, "the owner is known");
}

#[test]
fn a_page_that_says_so_is_a_failure_though_it_answers_200_and_repeats_what_was_sent() {
    let application = forms();
    let gateway = recipe("login-page.yaml", application.address(), &[("POST /login", "POST /page/login")]);
    let try_as = |client: u8, name: &str, password: &str| {
        log_in_at(&gateway, "/page/login", &format!("127.0.0.{client}"), name, password)
    };
    assert!((1..=8).all(|_| try_as(1, "bob", PASSWORD) == 200), "successes are not counted");
    let statuses: Vec<u16> = (1..=7).map(|client| try_as(client, "Welcome, alice", "guess")).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429]);
}

#[test]
fn a_json_answer_of_false_is_a_failure() {
    let application = forms();
    let gateway = recipe("login-json.yaml", application.address(), &[]);
    let ask = |client: u8, password: &str| {
        let body = format!(r#"{{"user": "alice", "password": "{password}"}}"#);
        let request = gateway.post("/api/login").from(&format!("127.0.0.{client}"));
        request.json(&body).send().status
    };
    assert!((1..=8).all(|_| ask(1, PASSWORD) == 200), "successes are not counted");
    let statuses: Vec<u16> = (11..=17).map(|client| ask(client, "guess")).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429]);
}

#[test]
fn basic_authentication_is_guarded_by_name() {
    let application = forms();
    let gateway = recipe("login-basic.yaml", application.address(), &[]);
    // alice:guess, and alice:correct horse
    let (wrong, right) = ("Basic YWxpY2U6Z3Vlc3M=", "Basic YWxpY2U6Y29ycmVjdCBob3JzZQ==");
    let ask = |client: u8, secret: &str| {
        let request = gateway.get("/private/page").from(&format!("127.0.0.{client}"));
        request.header("Authorization", secret).send().status
    };
    assert!((1..=30).all(|_| ask(1, right) == 200), "successes are not counted");
    let statuses: Vec<u16> = (1..=7).map(|client| ask(client, wrong)).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429]);
}
