//! Django's own login view sends away who is signed in already, which looks like a success of the name in the request.

use std::net::SocketAddr;

use crate::alphabet::guesses;
use crate::attack::{Login, all_guesses_count, form, success_stays_the_names_own};
use crate::django::{Django, PASSWORD};
use crate::jar::Jar;
use crate::support::{Gateway, Request, Response, recipe};

const LOGIN: &str = "/accounts/login/";

/// A token of a form: it is good where the cookie says the same.
const TOKEN: &str = "abcdefghijklmnopqrstuvwxyzABCDEF";
const COOKIE: &str = "csrftoken=abcdefghijklmnopqrstuvwxyzABCDEF";

/// The project, asked by this login.
#[derive(Debug)]
struct LoginView(Django);

fn guarded(django: &LoginView) -> Gateway {
    recipe("login-django.yaml", django.address(), &[("POST /admin/login", "POST /accounts/login")])
}

/// Hands the form in.
fn hand_in(gateway: &Gateway, from: &str, cookies: &str, name: &str, password: &str) -> Response {
    let fields = form(&[("csrfmiddlewaretoken", TOKEN), ("username", name), ("password", password)]);
    gateway.post(LOGIN).host("shop.localhost").from(from).header("Cookie", cookies).form(&fields).send()
}

impl Login for LoginView {
    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn form(&self) -> String {
        format!("{LOGIN}:username=^USER^&password=^PASS^:S=302")
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        hand_in(gateway, from, COOKIE, name, password)
    }

    fn is_success(&self, answer: &Response) -> bool {
        answer.status == 302 && answer.headers.all("set-cookie").iter().any(|line| line.starts_with("sessionid="))
    }

    fn judged(&self, name: &str) -> usize {
        self.0.logged(&format!("judged {name}.")).len()
    }
}

#[test]
fn however_a_guess_is_written_down_django_judges_no_more_than_the_limit_says() {
    let django = LoginView(Django::start());
    let gateway = guarded(&django);
    let guesses = guesses("username", &[("password", "guess"), ("csrfmiddlewaretoken", TOKEN)], "alice", 400);
    all_guesses_count(&django, &gateway, "alice", &guesses, |to, from, guess| {
        let request = Request::new(to, "POST", LOGIN).host("shop.localhost").from(from).header("Cookie", COOKIE);
        request.body(&guess.content_type, &guess.body).send()
    });
    assert!(django.gets_in(&gateway, "127.200.0.9", "bob"), "another user");
}

#[test]
fn a_session_of_ones_own_is_no_success_of_anybody_else_at_django() {
    let django = LoginView(Django::start());
    let gateway = guarded(&django);
    let mut own = Jar::default();
    let answer = django.log_in(&gateway, "127.0.0.66", "mallory", PASSWORD);
    assert!(django.is_success(&answer), "{}", answer.text());
    own.take(&answer);
    let cookies = format!("{}; {COOKIE}", own.without("csrftoken").header());
    success_stays_the_names_own(&django, &gateway, "bob", |from| hand_in(&gateway, from, &cookies, "bob", "guess"));
}
