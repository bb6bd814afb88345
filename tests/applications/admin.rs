//! The admin login of Django behind `config/login-django.yaml`.

use std::net::SocketAddr;

use crate::attack::{Asked, Login, a_thousand_words_find_nothing, buys_nothing, form, readings_are_throttled};
use crate::django::{Django, PASSWORD};
use crate::support::{Gateway, Request, Response, recipe};

/// Against forged forms Django compares a field with a cookie; any word of this length will do.
const TOKEN: &str = "abcdefghijklmnopqrstuvwxyz012345";

impl Login for Django {
    fn address(&self) -> SocketAddr {
        self.address()
    }

    fn form(&self) -> String {
        let fields = format!("username=^USER^&password=^PASS^&csrfmiddlewaretoken={TOKEN}&next=/admin/");
        format!("/admin/login/:{fields}:H=Cookie\\: csrftoken={TOKEN}:S=sessionid")
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        let fields = [("username", name), ("password", password)];
        attempt(gateway.address(), from, "/admin/login/", &fields, "").send()
    }

    fn is_success(&self, answer: &Response) -> bool {
        session(answer).is_some()
    }

    fn judged(&self, name: &str) -> usize {
        // Two threads may write into one line.
        let words = format!("judged {name}.");
        self.logged(&words).iter().map(|line| line.matches(&words).count()).sum()
    }
}

/// The fields of a form.
type Sent<'a> = &'a [(&'a str, &'a str)];

fn attempt(address: SocketAddr, from: &str, target: &str, fields: Sent<'_>, cookie: &str) -> Request {
    let fields = form(&[fields, &[("csrfmiddlewaretoken", TOKEN), ("next", "/admin/")]].concat());
    let separator = if cookie.is_empty() { "" } else { "; " };
    let cookie = format!("csrftoken={TOKEN}{separator}{cookie}");
    Request::new(address, "POST", target).host("shop.localhost").from(from).header("Cookie", &cookie).form(&fields)
}

fn session(answer: &Response) -> Option<String> {
    let cookies = answer.headers.all("set-cookie");
    let mut pairs = cookies.iter().filter_map(|line| line.split(';').next());
    pairs.find(|pair| pair.starts_with("sessionid=") && !pair.ends_with("\"\"")).map(str::to_owned)
}

#[test]
fn a_thousand_words_do_not_find_a_password_of_django() {
    let django = Django::start();
    a_thousand_words_find_nothing(&django, &recipe("login-django.yaml", django.address(), &[]));
}

#[test]
fn what_looks_like_a_success_of_django_buys_nothing() {
    let django = Django::start();
    let right = [("username", "bob"), ("password", PASSWORD)];
    let own = session(&attempt(django.address(), "127.0.0.9", "/admin/login/", &right, "").send()).expect("a session");
    let guess = ("password", "guess");
    let shapes: [(&str, &str, Sent<'_>); 5] = [
        // Takes the cookie of a session away that there is not.
        ("/admin/login/", "sessionid=none", &[("username", "alice"), guess]),
        ("/admin/login/?next=/admin/", &own, &[("username", "alice"), guess]),
        ("/admin/login/", &own, &[("username", "alice")]),
        ("/admin/login/?username=alice", "", &right),
        ("/admin/login/", "", &[("username", "alice"), right[0], right[1]]),
    ];
    for (target, cookie, fields) in shapes {
        let gateway = recipe("login-django.yaml", django.address(), &[]);
        buys_nothing(&django, &gateway, "alice", |from| {
            let answer = attempt(gateway.address(), from, target, fields, cookie).send();
            assert!(matches!(answer.status, 200 | 302 | 429), "{target} {fields:?}: {}", answer.status);
        });
    }
}

#[test]
fn however_its_path_is_spelled_the_login_of_django_is_throttled() {
    let django = Django::start();
    let gateway = recipe("login-django.yaml", django.address(), &[]);
    let ask = |to: Asked, target: &str| {
        let address = if to == Asked::Application { django.address() } else { gateway.address() };
        attempt(address, "127.0.3.1", target, &[("username", "bob"), ("password", "guess")], "").send()
    };
    let read = readings_are_throttled(&django, &gateway, "bob", &TARGETS, ask);
    assert!(read >= 3, "{read} readings");
}

/// Spellings of the login's path. Pages of the admin show its login to strangers, but take no password there.
const TARGETS: [&str; 30] = [
    "/admin/login/",
    "/admin/login",
    "/admin/login/?next=/admin/",
    "/%61dmin/login/",
    "/admin/%6cogin/",
    "/admin/login%2f",
    "/admin%2flogin/",
    "//admin/login/",
    "/admin//login/",
    "/admin/login//",
    "/./admin/login/",
    "/admin/./login/",
    "/x/../admin/login/",
    "/admin/x/../login/",
    "/admin/login/x",
    "/admin/login/.",
    "/admin/login/;x",
    "/admin/login;x/",
    "/ADMIN/login/",
    "/admin/LOGIN/",
    "/admin/login/%00",
    "/admin/login%00/",
    "/admin/login/%20",
    "/admin/login%20/",
    "/admin/login./",
    "/admin/login%3f/",
    "/admin/login%23/",
    "/admin\\login/",
    "/admin%5clogin/",
    "/%2561dmin/login/",
];
