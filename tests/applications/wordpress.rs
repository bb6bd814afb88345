//! WordPress behind `config/login-wordpress.yaml`.

mod site;

use std::net::SocketAddr;
use std::sync::Mutex;

use self::site::{PASSWORD, WordPress};
use crate::alphabet::guesses;
use crate::attack::{
    Asked, Login, a_thousand_words_find_nothing, all_guesses_count, buys_nothing, form, readings_are_throttled,
    success_stays_the_names_own,
};
use crate::php;
use crate::support::{Gateway, Request, Response, recipe};

impl Login for WordPress {
    fn address(&self) -> SocketAddr {
        self.address()
    }

    fn form(&self) -> String {
        "/wp-login.php:log=^USER^&pwd=^PASS^:S=wordpress_logged_in".to_owned()
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        gateway.post("/wp-login.php").from(from).form(&form(&[("log", name), ("pwd", password)])).send()
    }

    fn is_success(&self, answer: &Response) -> bool {
        session(answer).is_some()
    }

    fn judged(&self, name: &str) -> usize {
        self.judged(name)
    }
}

fn guarded(site: &WordPress) -> Gateway {
    recipe("login-wordpress.yaml", site.address(), &[])
}

/// The cookies of a session that this answer begins, as they are sent back.
fn session(answer: &Response) -> Option<String> {
    let cookies: Vec<&str> =
        answer.headers.all("set-cookie").iter().filter_map(|line| line.split(';').next()).collect();
    let is_one = |cookie: &&str| cookie.starts_with("wordpress_logged_in_") && !cookie.ends_with("=%20");
    cookies.iter().any(is_one).then(|| cookies.join("; "))
}

#[test]
fn a_thousand_words_do_not_find_a_password_of_wordpress() {
    let site = WordPress::start();
    a_thousand_words_find_nothing(&site, &guarded(&site));
}

#[test]
fn however_a_guess_is_written_down_wordpress_judges_no_more_than_the_limit_says() {
    let site = WordPress::start();
    let gateway = guarded(&site);
    let guesses = guesses("log", &[("pwd", "guess"), ("wp-submit", "Log In")], "alice", 600);
    all_guesses_count(&site, &gateway, "alice", &guesses, |to, from, guess| {
        Request::new(to, "POST", "/wp-login.php").from(from).body(&guess.content_type, &guess.body).send()
    });
    // Whoever does something else is not kept from it.
    let ask = |from: &str, target: &str, fields: &[(&str, &str)]| {
        let answer =
            gateway.post(target).from(from).header("Referer", "http://app.example/").form(&form(fields)).send();
        (answer.status, answer.header("location").unwrap_or_default().to_owned())
    };
    for client in 1..=3 {
        let from = format!("127.200.0.{client}");
        let (status, location) = ask(&from, "/wp-login.php?action=lostpassword", &[("user_login", "bob")]);
        assert!(status == 302 && location.contains("checkemail=confirm"), "{status} {location}");
        assert_eq!(ask(&from, "/wp-login.php?action=postpass", &[("post_password", "x")]).0, 302);
        assert_eq!(ask(&from, "/wp-login.php?action=register", &[("user_login", "new")]).0, 302);
    }
    // WordPress itself refuses a second one soon after.
    let comment = [("comment_post_ID", "1"), ("comment", "Hello"), ("author", "Guest"), ("email", "guest@example.com")];
    let (status, location) = ask("127.200.0.1", "/wp-comments-post.php", &comment);
    assert!(status == 302 && location.contains("unapproved"), "{status} {location}");
    assert!(site.gets_in(&gateway, "127.200.0.9", "bob"), "another user");
}

/// What WordPress answers without a login: a redirect, cookies, or both.
#[test]
fn what_looks_like_a_success_of_wordpress_buys_nothing() {
    let site = WordPress::start();
    let sent = |name: &str, target: &str, fields: &[(&str, &str)], sign: &str| {
        let gateway = guarded(&site);
        let fields = form(&[&[("log", name)], fields].concat());
        let ask = |from: &str| {
            let answer = gateway.post(target).from(from).header("Referer", "http://app.example/").form(&fields).send();
            let shown = answer.headers.all("set-cookie").join("\n") + answer.header("location").unwrap_or_default();
            assert!(answer.status == 429 || shown.contains(sign), "{target}: {} {shown}", answer.status);
        };
        buys_nothing(&site, &gateway, name, ask);
    };
    let nonce = Request::new(site.address(), "GET", "/wp-login.php?action=logout").send().text();
    let nonce = nonce.split("_wpnonce=").nth(1).and_then(|rest| rest.get(..10)).expect("a link to log out with");
    let guess = ("pwd", "guess");
    sent("bob", "/wp-login.php?action=postpass", &[("post_password", "x")], "wp-postpass_");
    sent("carol", "/wp-login.php", &[("action", "postpass"), ("post_password", "x")], "wp-postpass_");
    sent("dave", "/wp-login.php?action=lostpassword", &[("user_login", "dave")], "checkemail=confirm");
    sent("erin", &format!("/wp-login.php?action=logout&_wpnonce={nonce}"), &[guess], "wordpress_logged_in_");
    sent("frank", "/wp-login.php?reauth=1", &[guess], "wordpress_logged_in_");
    sent("grace", "/wp-login.php?action=register", &[("user_login", "grace")], "registration=disabled");
    sent("heidi", "/wp-login.php?wp_lang=wordpress_logged_in_x", &[guess], "wp_lang");
    sent("ivan", "/wp-login.php?interim-login=1&redirect_to=/wp-admin/", &[guess], "wordpress_test_cookie");
}

/// With a session of its own, a request without a name that WordPress reads is a success of the session's owner.
#[test]
fn a_session_of_ones_own_is_no_success_of_anybody_else() {
    let site = WordPress::start();
    let own = Request::new(site.address(), "POST", "/wp-login.php");
    let own = session(&own.form(&form(&[("log", "mallory"), ("pwd", PASSWORD)])).send()).expect("a session");
    let both = |name: &str| format!("log={name}&log=mallory&pwd={}", PASSWORD.replace(' ', "+"));
    let beyond = |name: &str| format!("{}log={name}", "a&".repeat(1001));
    let urlencoded = "application/x-www-form-urlencoded";
    let file = |name: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"log\"; filename=\"x\"\r\n\r\n{name}\r\n--b--\r\n")
    };
    let shapes: [(&str, &str, &str, String); 7] = [
        ("bob", "/wp-login.php?log=bob", urlencoded, "x=1".to_owned()),
        ("carol", "/wp-login.php", "text/plain", "log=carol".to_owned()),
        ("dave", "/wp-login.php", urlencoded, both("dave")),
        ("erin", "/wp-login.php", urlencoded, "LOG=erin".to_owned()),
        ("frank", "/wp-login.php", urlencoded, beyond("frank")),
        ("grace", "/wp-login.php", "multipart/form-data; boundary=b", file("grace")),
        ("heidi", "/wp-login.php", "application/json", "{\"log\": \"heidi\"}".to_owned()),
    ];
    for (name, target, content_type, body) in shapes {
        let gateway = guarded(&site);
        let ask = |from: &str| {
            let request = gateway.post(target).from(from).header("Cookie", &own);
            let answer = request.body(content_type, &body).send();
            assert!(answer.status == 429 || session(&answer).is_some(), "{target} {body}: {}", answer.status);
        };
        buys_nothing(&site, &gateway, name, ask);
    }
}

/// A field that WordPress does not read leaves the session's owner signed in, with new cookies each time.
#[test]
fn no_success_is_forged_from_any_number_of_addresses() {
    let site = WordPress::start();
    let gateway = guarded(&site);
    let own = gateway.post("/wp-login.php").from("127.0.0.66").form(&form(&[("log", "mallory"), ("pwd", PASSWORD)]));
    let own = Mutex::new(session(&own.send()).expect("a session"));
    success_stays_the_names_own(&site, &gateway, "bob", |from| {
        let mut cookies = own.lock().expect("no panic meanwhile");
        let answer = gateway.post("/wp-login.php").from(from).header("Cookie", &cookies).form("LOG=bob").send();
        if let Some(renewed) = session(&answer) {
            *cookies = renewed;
        }
        answer
    });
}

#[test]
fn however_its_path_is_spelled_the_login_of_wordpress_is_throttled() {
    let site = WordPress::start();
    let (_fpm, nginx) = php::behind_nginx(&site.root());
    for (server, name, least) in [(site.address(), "bob", 24), (nginx.address(), "carol", 16)] {
        let gateway = recipe("login-wordpress.yaml", server, &[]);
        let ask = |to: Asked, target: &str| {
            let address = if to == Asked::Application { server } else { gateway.address() };
            let fields = form(&[("log", name), ("pwd", "guess")]);
            Request::new(address, "POST", target).from("127.0.3.1").form(&fields).send()
        };
        let read = readings_are_throttled(&site, &gateway, name, &TARGETS, ask);
        assert!(read >= least, "{read} readings");
    }
}

/// One call that guesses as often as there are words.
fn multicall(name: &str, words: usize) -> String {
    let guess = |number: usize| {
        let word = if number == words / 2 { PASSWORD.to_owned() } else { format!("guess-{number}") };
        format!(
            "<value><struct><member><name>methodName</name><value>wp.getUsersBlogs</value></member><member><name>params\
             </name><value><array><data><value><array><data><value>{name}</value><value>{word}</value></data></array>\
             </value></data></array></value></member></struct></value>"
        )
    };
    let calls: String = (0..words).map(guess).collect();
    format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>system.multicall</methodName><params><param><value><array><data>\
         {calls}</data></array></value></param></params></methodCall>"
    )
}

#[test]
fn calls_of_xml_rpc_are_few_however_many_guesses_they_hold() {
    let site = WordPress::start();
    let gateway = guarded(&site);
    let call = |target: &str| gateway.post(target).from("127.0.0.66").body("text/xml", multicall("bob", 300)).send();
    let answer = call("/xmlrpc.php");
    assert!(answer.status == 200 && answer.text().contains("faultCode"), "{}", answer.text());
    // WordPress judges the first and refuses the rest.
    assert_eq!(site.judged("bob"), 1);
    let one = "<?xml version=\"1.0\"?><methodCall><methodName>wp.getUsersBlogs</methodName><params><param>\
               <value>carol</value></param><param><value>guess</value></param></params></methodCall>";
    let guess = |target: &str| gateway.post(target).from("127.0.0.67").body("text/xml", one).status();
    let statuses: Vec<u16> = (0..15).map(|_| guess("/xmlrpc.php")).collect();
    assert_eq!((site.judged("carol"), &statuses[10..]), (10, &[429; 5][..]), "{statuses:?}");
    let spellings = [
        "//xmlrpc.php",
        "/xmlrpc.php/x",
        "/%78mlrpc.php",
        "/./xmlrpc.php",
        "/xmlrpc.php/",
        "/xmlrpc.php?rsd",
        "/x/../xmlrpc.php",
    ];
    assert_eq!(spellings.map(guess), [429; 7]);
    assert_eq!(site.judged("carol"), 10);
}

/// A refusal in an envelope is a 200, so that it is requests that count.
#[test]
fn passwords_of_programs_are_judged_as_often_as_the_limit_says_wherever_they_are_shown() {
    let site = WordPress::start();
    let gateway = guarded(&site);
    // bob:guess
    let ask =
        |from: &str, target: &str| gateway.get(target).from(from).header("Authorization", "Basic Ym9iOmd1ZXNz").send();
    let targets =
        ["/?rest_route=/wp/v2/users/me&_envelope=1", "/index.php?rest_route=/wp/v2/users/me", "/?rest_route=/"];
    let refused = ask("127.0.0.66", targets[0]);
    assert!(refused.status == 200 && refused.text().contains("401"), "{}: {}", refused.status, refused.text());
    let statuses: Vec<u16> = (0..150).map(|round| ask("127.0.0.66", targets[round % 3]).status).collect();
    assert_eq!(statuses.iter().filter(|status| **status != 429).count(), 119, "{statuses:?}");
    assert_eq!(ask("127.0.0.67", targets[1]).status, 429, "from another client too");
    assert!((1..=120).contains(&site.judged("bob")), "{}", site.judged("bob"));
}

/// Spellings of the login's path.
const TARGETS: [&str; 40] = [
    "/wp-login.php",
    "/wp-login.php/",
    "/wp-login.php/x",
    "/wp-login.php/x.php",
    "/wp-login.php/x/y",
    "/wp-login.php/index.php",
    "/wp-login.php/..;/x",
    "/wp-login.php%2fx",
    "///wp-login.php//x",
    "/wp%2dlogin.php/x",
    "/wp-login.php/%2e%2e/x",
    "/wp-login.php/x/..",
    "/wp-login.php/../wp-login.php",
    "/wp-login.php//",
    "/wp-login.php/%00",
    "/wp-login.php%00",
    "/wp-login.php%00.js",
    "/wp-login.php%20",
    "/wp-login.php.",
    "/wp-login.php;x",
    "/wp-login.php;/x",
    "/wp-login.php;jsessionid=1/x",
    "/wp-login.php%3bx",
    "/wp-login.php%3f",
    "/wp-login.php%23",
    "/wp-login.php%2f",
    "/wp-login.php%5c",
    "/wp-login.php%5cx",
    "/wp-login.php?/x",
    "/wp-login.php?x=/../y",
    "//wp-login.php",
    "/./wp-login.php",
    "/%2e/wp-login.php",
    "/x/../wp-login.php",
    "/wp-admin/../wp-login.php",
    "/%77p-login.php",
    "/wp-login%2ephp",
    "/WP-LOGIN.PHP",
    "/wp-login.PHP",
    "/index.php/wp-login.php",
];
