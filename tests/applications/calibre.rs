//! calibre-web, an application with Flask-Login, behind `config/login-calibre-web.yaml`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::alphabet::guesses;
use crate::attack::{Login, all_guesses_count, buys_nothing, form, success_stays_the_names_own};
use crate::jar::{Jar, between};
use crate::php;
use crate::support::{Gateway, Program, Request, Response, recipe};

const PASSWORD: &str = "correct horse";

/// A running calibre-web with settings of its own, until it is dropped.
#[derive(Debug)]
struct Calibre {
    server: Program,
    folder: TempDir,
}

impl Calibre {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the application");
        let settings = folder.path().join("app.db");
        let mut users = Command::new(environment("python"));
        users.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/applications/calibre/users.py"));
        users.env("CALIBRE_DBPATH", folder.path()).arg(&settings).arg(PASSWORD);
        php::said_by(users.args(["alice", "bob", "carol", "dave", "mallory"]));
        let server = Program::start(&[], |_, address| {
            let change = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as it: it.execute(f'UPDATE settings SET config_port = {sys.argv[2]}')";
            php::said_by(
                Command::new(environment("python")).args(["-c", change]).arg(&settings).arg(address.port().to_string()),
            );
            let mut command = Command::new(environment("cps"));
            command.arg("-p").arg(&settings).args(["-i", "127.0.0.1", "-o"]).arg(folder.path().join("told"));
            command.env("CALIBRE_DBPATH", folder.path());
            command
        });
        Self { server, folder }
    }

    fn guarded(&self) -> Gateway {
        recipe("login-calibre-web.yaml", self.server.address(), &[])
    }
}

fn environment(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/calibre/bin").join(name);
    assert!(program.exists(), "{} is missing: tests/run installs it", program.display());
    program
}

/// The form of the login as this browser gets it: its token.
fn token(jar: &mut Jar, page: &Response) -> String {
    jar.take(page);
    between(&page.text(), "name=\"csrf_token\" value=\"", "\"")
}

impl Login for Calibre {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn form(&self) -> String {
        "/login:username=^USER^&password=^PASS^:S=302".to_owned()
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        let mut jar = Jar::default();
        let token = token(&mut jar, &gateway.get("/login").from(from).send());
        let fields = [("csrf_token", &*token), ("username", name), ("password", password), ("remember_me", "on")];
        gateway.post("/login").from(from).header("Cookie", &jar.header()).form(&form(&fields)).send()
    }

    fn is_success(&self, answer: &Response) -> bool {
        answer.status == 302 && answer.headers.all("set-cookie").iter().any(|line| line.starts_with("session="))
    }

    fn judged(&self, name: &str) -> usize {
        let told = fs::read(self.folder.path().join("told")).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        let failed = format!("Login failed for user \"{name}\"");
        told.lines().filter(|line| line.contains(&failed)).count()
    }
}

/// It takes long to start, so all is tried on one.
#[test]
fn calibre_web_judges_no_more_guesses_than_the_limit_says() {
    let books = Calibre::start();
    however_a_guess_is_written_down(&books);
    with_a_session_of_ones_own(&books);
}

fn however_a_guess_is_written_down(books: &Calibre) {
    let gateway = books.guarded();
    let mut jar = Jar::default();
    let token = token(&mut jar, &Request::new(books.address(), "GET", "/login").send());
    let guesses = guesses("username", &[("password", "guess"), ("csrf_token", &token)], "alice", 100);
    let cookies = jar.header();
    all_guesses_count(books, &gateway, "alice", &guesses, |to, from, guess| {
        let request = Request::new(to, "POST", "/login").from(from).header("Cookie", &cookies);
        request.body(&guess.content_type, &guess.body).send()
    });
    assert!(books.gets_in(&gateway, "127.200.0.9", "dave"), "another user");
}

/// Whoever is signed in, or comes with `remember_token`, is redirected from the login with a new cookie.
fn with_a_session_of_ones_own(books: &Calibre) {
    let gateway = books.guarded();
    let sign_in = || {
        let mut own = Jar::default();
        let token = token(&mut own, &gateway.get("/login").from("127.0.0.66").send());
        let fields = [("csrf_token", &*token), ("username", "mallory"), ("password", PASSWORD), ("remember_me", "on")];
        let answer =
            gateway.post("/login").from("127.0.0.66").header("Cookie", &own.header()).form(&form(&fields)).send();
        assert!(books.is_success(&answer), "{}", answer.text());
        own.take(&answer);
        (own, token)
    };
    let forge = |from: &str, name: &str, cookies: &str, token: &str| {
        let fields = form(&[("csrf_token", token), ("username", name), ("password", "guess")]);
        gateway.post("/login").from(from).header("Cookie", cookies).form(&fields).send()
    };
    let remembered = sign_in().0.without("session").header();
    success_stays_the_names_own(books, &gateway, "bob", |from| {
        // The form of a stranger, handed in with the cookie of somebody who is remembered.
        let mut stranger = Jar::default();
        let token = token(&mut stranger, &Request::new(books.address(), "GET", "/login").send());
        forge(from, "bob", &format!("{}; {remembered}", stranger.header()), &token)
    });
    // Whoever is still signed in gets no new cookie.
    let (own, own_token) = sign_in();
    buys_nothing(books, &gateway, "carol", |from| {
        assert!([302, 429].contains(&forge(from, "carol", &own.header(), &own_token).status));
    });
}
