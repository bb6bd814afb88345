//! The login is limited for each client and for each account. The rest of the site is not.

use crate::browser::Browser;
use crate::django::{Django, PASSWORD};
use crate::support::Request;

const ATTEMPT: &str = "\"POST /admin/login/";

#[test]
fn a_client_that_guesses_reaches_the_application_as_often_as_its_limit_says() {
    let django = Django::start();
    let gateway = django.guarded();
    let mut guesser = Browser::at(&gateway, "127.0.0.9");
    let statuses: Vec<u16> = (0..8).map(|guess| guesser.log_in(&format!("user-{guess}"), "guess").status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
    let denied = guesser.log_in("alice", PASSWORD);
    assert_eq!(denied.status, 429);
    assert!(denied.header("content-type").expect("a page").starts_with("text/html"));
    let wait: u64 = denied.header("retry-after").expect("a wait").parse().expect("whole seconds");
    assert!((3000..=3600).contains(&wait), "{wait}");
    let attempts = django.logged(ATTEMPT);
    assert_eq!(attempts.len(), 5, "{attempts:?}");
    // The application knows who asked.
    assert!(attempts.iter().all(|line| line.contains("127.0.0.9:")), "{attempts:?}");
    // A denied guesser still sees the form, and anybody else logs in.
    assert_eq!(guesser.get("/admin/login/").status, 200);
    assert_eq!(Browser::at(&gateway, "127.0.0.10").log_in("alice", PASSWORD).status, 302);
}

#[test]
fn an_account_is_guarded_against_many_clients_however_its_name_is_spelled() {
    let django = Django::start();
    let gateway = django.guarded();
    let guess =
        |client: u8, name: &str| Browser::at(&gateway, &format!("127.0.1.{client}")).log_in(name, "guess").status;
    let names = ["alice", "ALICE", " alice ", "\u{ff41}lice", "Alice", "alice"];
    let statuses: Vec<u16> = (1..).zip(names).map(|(client, name)| guess(client, name)).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429, 429]);
    assert_eq!(django.logged(ATTEMPT).len(), 3);
    assert_eq!(Browser::at(&gateway, "127.0.1.99").log_in("bob", PASSWORD).status, 302);
}

#[test]
fn somebody_logged_in_works_as_if_there_were_no_gateway() {
    let django = Django::start();
    let gateway = django.guarded();
    let mut alice = Browser::at(&gateway, "127.0.0.20");
    let entered = alice.log_in("alice", PASSWORD);
    assert_eq!((entered.status, entered.header("location")), (302, Some("/admin/")));
    assert!(alice.get("/admin/").text().contains("Site administration"));
    for number in 0..12 {
        let saved = alice.submit("/admin/auth/group/add/", &[("name", &format!("group {number}"))]);
        assert_eq!((saved.status, saved.header("location")), (302, Some("/admin/auth/group/")));
    }
    let groups = alice.get("/admin/auth/group/").text();
    assert!(groups.contains("group 0") && groups.contains("group 11"));
    let left = alice.submit_from("/admin/", "/admin/logout/", &[]);
    assert_eq!(left.status, 200);
    assert_eq!(alice.get("/admin/").status, 302);
}

#[test]
fn pages_and_files_are_the_same_through_the_gateway() {
    let django = Django::start();
    let gateway = django.guarded();
    for target in [
        "/",
        "/admin/",
        "/admin",
        "/admin/login/",
        "/static/admin/css/base.css",
        "/static/admin/js/vendor/jquery/jquery.js",
        "/static/admin/img/icon-addlink.svg",
        "/static/missing.css",
        "/missing/%2e%2e/page?x=%20&y",
    ] {
        for method in ["GET", "HEAD"] {
            let ask = |address| Request::new(address, method, target).host("shop.localhost").send();
            let (direct, through) = (ask(django.address()), ask(gateway.address()));
            assert_eq!(through.status, direct.status, "{method} {target}");
            for name in ["content-type", "content-length", "location", "last-modified", "vary", "x-frame-options"] {
                assert_eq!(through.header(name), direct.header(name), "{name} of {method} {target}");
            }
            // A form has a token of its own each time, and the page of an error tells the request.
            if target.starts_with("/static/") && direct.status == 200 {
                assert_eq!(through.body, direct.body, "{method} {target}");
            }
        }
    }
    let file = gateway.get("/static/admin/css/base.css").host("shop.localhost");
    let modified = file.send().header("last-modified").expect("a date").to_owned();
    let unchanged = file.header("If-Modified-Since", &modified).send();
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
}
