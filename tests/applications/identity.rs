//! Logins of a server of identities behind `config/login-keycloak.yaml`, and a second factor behind `config/second-factor.yaml`.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::alphabet::guesses;
use crate::attack::{Login, all_guesses_count, buys_nothing, form, success_stays_the_names_own};
use crate::jar::Jar;
use crate::served::Served;
use crate::support::{Gateway, Request, Response, recipe};

const PASSWORD: &str = "correct horse";
const CODE: &str = "123456";

const TOKEN: &str = "/realms/main/protocol/openid-connect/token";
const FORM: &str = "/realms/main/login-actions/authenticate?execution=password";
const SECOND_FORM: &str = "/realms/main/login-actions/authenticate?execution=code";

fn served() -> Served {
    let folder = tempfile::tempdir().expect("a folder for the application");
    fs::write(folder.path().join("identity.py"), include_str!("identity.py")).expect("a file in the folder");
    Served::start(folder, "identity")
}

/// The server of identities, asked by one of its two ways.
#[derive(Debug)]
struct Identity {
    application: Served,
    target: &'static str,
}

impl Login for Identity {
    fn address(&self) -> SocketAddr {
        self.application.address()
    }

    fn form(&self) -> String {
        format!("{}:username=^USER^&password=^PASS^:S=302", self.target)
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        let fields = form(&[("grant_type", "password"), ("username", name), ("password", password)]);
        gateway.post(self.target).from(from).form(&fields).send()
    }

    fn is_success(&self, answer: &Response) -> bool {
        answer.text().contains("access_token") || answer.status == 302
    }

    fn judged(&self, name: &str) -> usize {
        let lines = self.application.logged("judged ");
        lines.iter().filter(|line| line.ends_with(&format!(" {name}."))).count()
    }
}

#[test]
fn however_a_guess_is_written_down_an_identity_server_judges_no_more_than_the_limit_says() {
    for target in [TOKEN, FORM] {
        let identity = Identity { application: served(), target };
        let gateway = recipe("login-keycloak.yaml", identity.address(), &[]);
        let guesses = guesses("username", &[("password", "guess"), ("grant_type", "password")], "alice", 300);
        all_guesses_count(&identity, &gateway, "alice", &guesses, |to, from, guess| {
            Request::new(to, "POST", target).from(from).body(&guess.content_type, &guess.body).send()
        });
        assert!(identity.gets_in(&gateway, "127.200.0.9", "bob"), "another user");
    }
}

#[test]
fn a_session_of_ones_own_is_no_success_of_anybody_else_at_an_identity_server() {
    let identity = Identity { application: served(), target: FORM };
    let gateway = recipe("login-keycloak.yaml", identity.address(), &[]);
    let mut own = Jar::default();
    own.take(&identity.log_in(&gateway, "127.0.0.66", "mallory", PASSWORD));
    let cookies = own.header();
    success_stays_the_names_own(&identity, &gateway, "bob", |from| {
        let fields = form(&[("username", "bob"), ("password", "guess")]);
        gateway.post(FORM).from(from).header("Cookie", &cookies).form(&fields).send()
    });
}

/// The form with the code has no field for a name, and nobody looks whether there is one.
#[test]
fn a_second_factor_is_no_success_of_whom_its_request_names() {
    let identity = Identity { application: served(), target: FORM };
    let gateway = recipe("login-keycloak.yaml", identity.address(), &[]);
    let next = AtomicUsize::new(0);
    buys_nothing(&identity, &gateway, "alice", |from| {
        // An account of one's own each time.
        let name = format!("oscar{}", next.fetch_add(1, Ordering::Relaxed));
        let mut own = Jar::default();
        own.take(&identity.log_in(&gateway, from, &name, PASSWORD));
        let code = gateway.post(SECOND_FORM).from(from).header("Cookie", &own.header());
        let answer = code.form(&form(&[("code", CODE), ("username", "alice")])).send();
        let is_too_often = own.header().is_empty();
        assert!(identity.is_success(&answer) || is_too_often, "it looks like a success: {}", answer.status);
    });
}

/// Refreshing names nobody, and takes nothing from anybody.
#[test]
fn tokens_are_refreshed_while_others_guess() {
    let identity = Identity { application: served(), target: TOKEN };
    let gateway = recipe("login-keycloak.yaml", identity.address(), &[]);
    let tokens = identity.log_in(&gateway, "127.0.0.5", "alice", PASSWORD).json();
    for client in 1..=12 {
        identity.log_in(&gateway, &format!("127.0.1.{client}"), "alice", "guess");
    }
    let refresh = tokens["refresh_token"].as_str().expect("a token");
    let fields = form(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
    let refreshed = || gateway.post(TOKEN).from("127.0.0.5").form(&fields).status();
    assert!((0..30).all(|_| refreshed() == 200));
}

/// A refreshed token proves no password, whoever is named beside it.
#[test]
fn a_refreshed_token_is_no_success_of_whom_its_request_names() {
    let identity = Identity { application: served(), target: TOKEN };
    let gateway = recipe("login-keycloak.yaml", identity.address(), &[]);
    let tokens = identity.log_in(&gateway, "127.0.0.66", "mallory", PASSWORD).json();
    let refresh = tokens["refresh_token"].as_str().expect("a token");
    let fields = form(&[("grant_type", "refresh_token"), ("refresh_token", refresh), ("username", "alice")]);
    buys_nothing(&identity, &gateway, "alice", |from| {
        assert_eq!(gateway.post(TOKEN).from(from).form(&fields).status(), 200, "it looks like a success");
    });
}

#[test]
fn codes_are_judged_as_often_as_the_limit_says_however_often_the_login_is_begun_again() {
    let application = served();
    let gateway = recipe("second-factor.yaml", application.address(), &[]);
    let sign_in_at = |host: &str, from: &str, name: &str| {
        let fields = form(&[("username", name), ("password", PASSWORD)]);
        let answer = gateway.post("/login").host(host).from(from).form(&fields).send();
        let mut jar = Jar::default();
        jar.take(&answer);
        (answer.status == 302).then(|| jar.header())
    };
    let sign_in = |from: &str, name: &str| sign_in_at("app.example", from, name).expect("a session");
    let code = |from: &str, cookies: &str, code: &str| {
        gateway.post("/login/code").from(from).header("Cookie", cookies).form(&form(&[("code", code)])).status()
    };
    let spelled = ["alice", "Alice", " alice", "ALICE"];
    let statuses: Vec<u16> = (0..60)
        .map(|number| {
            let from = format!("127.0.1.{}", number + 1);
            let cookies = sign_in(&from, spelled[number % spelled.len()]);
            code(&from, &cookies, &format!("{number:06}"))
        })
        .collect();
    assert_eq!(application.logged("judged code alice.").len(), 5, "{statuses:?}");
    // Nor however many hosts the client names: the application does not look at them.
    let sessions =
        |number: usize| sign_in_at(&format!("{number}.example"), &format!("127.0.2.{}", number % 200), "dave");
    for cookies in (1..=60).filter_map(sessions) {
        (1..=6).for_each(|number| _ = code(&format!("127.0.3.{number}"), &cookies, "000000"));
    }
    assert_eq!(application.logged("judged code dave.").len(), 15, "five at each of three hosts");
    let cookies = sign_in("127.0.0.5", "alice");
    assert_eq!(code("127.0.0.5", &cookies, CODE), 429, "alice too, for a while: somebody knows the password");
    let cookies = sign_in("127.0.0.6", "bob");
    assert_eq!(code("127.0.0.6", &cookies, CODE), 302, "anybody else gets in");
    // What somebody does who is signed in is counted by person, also behind one address.
    let change = |cookies: &str| gateway.post("/account/password").from("127.0.0.9").header("Cookie", cookies).status();
    assert_eq!((0..12).map(|_| change(&cookies)).filter(|status| *status == 200).count(), 10);
    let carol = sign_in("127.0.0.7", "carol");
    assert_eq!(change(&carol), 200);
}
