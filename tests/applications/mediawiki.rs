//! `MediaWiki` behind `config/login-mediawiki.yaml`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::alphabet::guesses;
use crate::attack::{Login, all_guesses_count, buys_nothing, form};
use crate::jar::{Jar, between};
use crate::php;
use crate::support::{Gateway, Program, Request, Response, recipe};

const PASSWORD: &str = "correct horse";

/// Where Debian's package has the scripts of the wiki.
const CODE: &str = "/usr/share/mediawiki";

/// A running wiki with a database of its own, until it is dropped.
#[derive(Debug)]
struct MediaWiki {
    server: Program,
    folder: TempDir,
}

impl MediaWiki {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the wiki");
        let settings = folder.path().join("LocalSettings.php");
        let at = |script: &str| {
            let mut command = Command::new("php");
            command.arg(Path::new(CODE).join("maintenance").join(script));
            command
        };
        let mut install = at("install.php");
        install.args(["--dbtype", "sqlite", "--server", "http://app.example", "--scriptpath", "", "--pass", PASSWORD]);
        php::said_by(
            install.arg("--confpath").arg(folder.path()).arg("--dbpath").arg(folder.path()).args(["wiki", "Owner"]),
        );
        let text = fs::read_to_string(&settings).expect("the settings of the wiki");
        fs::write(&settings, text + include_str!("mediawiki/settings.php")).expect("a file in the folder");
        for name in ["Alice", "Bob", "Carol", "Dave", "Erin", "Mallory"] {
            let mut create = at("createAndPromote.php");
            php::said_by(create.env("MW_CONFIG_FILE", &settings).args([name, PASSWORD]));
        }
        let server = Program::start(&[], |_, address| {
            let mut command = php::serving(Path::new(CODE), address);
            command.env("MW_CONFIG_FILE", &settings);
            command
        });
        Self { server, folder }
    }

    fn guarded(&self) -> Gateway {
        recipe("login-mediawiki.yaml", self.server.address(), &[])
    }

    /// A session before the login, and its token: both last over wrong passwords.
    fn login_form(&self) -> (String, String) {
        let page = Request::new(self.server.address(), "GET", "/index.php?title=Special:UserLogin").send();
        let mut jar = Jar::default();
        jar.take(&page);
        (jar.header(), between(&page.text(), "name=\"wpLoginToken\" type=\"hidden\" value=\"", "\""))
    }

    /// Logs in; the cookies of the session, with the one that keeps it for long.
    fn jar_of(&self, gateway: &Gateway, from: &str, name: &str) -> Jar {
        let answer = self.log_in(gateway, from, name, PASSWORD);
        assert!(self.is_success(&answer), "{}", answer.text());
        let mut jar = Jar::default();
        jar.take(&answer);
        jar
    }
}

impl Login for MediaWiki {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn form(&self) -> String {
        "/index.php?title=Special:UserLogin:wpName=^USER^&wpPassword=^PASS^:S=UserID".to_owned()
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        let (cookies, token) = self.login_form();
        let fields = [
            ("wpName", name),
            ("wpPassword", password),
            ("wpLoginToken", &token),
            ("authAction", "login"),
            ("wpRemember", "1"),
        ];
        let request = gateway.post("/index.php/Special:UserLogin").from(from).header("Cookie", &cookies);
        request.form(&form(&fields)).send()
    }

    fn is_success(&self, answer: &Response) -> bool {
        answer.status == 302 && answer.headers.all("set-cookie").iter().any(|line| line.contains("UserID="))
    }

    fn judged(&self, name: &str) -> usize {
        let told = fs::read(self.folder.path().join("told")).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        told.lines().filter(|line| line.strip_prefix("judged ") == Some(name)).count()
    }
}

#[test]
fn however_a_guess_is_written_down_mediawiki_judges_no_more_than_the_limit_says() {
    let wiki = MediaWiki::start();
    let gateway = wiki.guarded();
    let (cookies, token) = wiki.login_form();
    let others =
        [("wpPassword", "guess"), ("wpLoginToken", &token), ("authAction", "login"), ("title", "Special:UserLogin")];
    let guesses = guesses("wpName", &others, "alice", 100);
    all_guesses_count(&wiki, &gateway, "alice", &guesses, |to, from, guess| {
        let request = Request::new(to, "POST", "/index.php").from(from).header("Cookie", &cookies);
        request.body(&guess.content_type, &guess.body).send()
    });
    // With the name of the namespace before it, from wherever it comes.
    let before = wiki.judged("bob");
    for (number, name) in
        ["User:bob", "user: bob", ":User:Bob", "user:_bob", "bob", "Bob", "_bob_"].iter().cycle().take(42).enumerate()
    {
        wiki.log_in(&gateway, &format!("127.100.0.{}", number + 1), name, "guess");
    }
    let judged = wiki.judged("bob") - before;
    assert!((5..=10).contains(&judged), "{judged}");
    // Whoever does something else is not kept from it.
    let from = "127.200.0.1";
    let post = |fields: &[(&str, &str)]| gateway.post("/index.php").from(from).form(&form(fields)).status();
    assert_eq!(post(&[("title", "Special:Search"), ("search", "x")]), 200);
    assert_eq!(post(&[("title", "Special:PasswordReset"), ("wpUsername", "Carol")]), 200);
    assert!(wiki.gets_in(&gateway, "127.200.0.9", "carol"), "another user");
}

/// Programs log in with JSON answers.
#[test]
fn logins_of_programs_at_mediawiki_are_judged_as_often_as_the_limit_says() {
    let wiki = MediaWiki::start();
    let gateway = wiki.guarded();
    let (cookies, token) = wiki.login_form();
    let ask = |number: usize, fields: &[(&str, &str)]| {
        let request = gateway.post("/api.php").from(&format!("127.0.1.{number}")).header("Cookie", &cookies);
        request
            .form(&form(
                &[&[("format", "json"), ("logintoken", &token), ("loginreturnurl", "http://app.example/")], fields]
                    .concat(),
            ))
            .send()
    };
    for number in 1..=20 {
        let name = ["bob", "Bob", "_bob", "b\u{200e}ob"][number % 4];
        ask(number, &[("action", "clientlogin"), ("username", name), ("password", "guess")]);
    }
    assert_eq!(wiki.judged("bob"), 5);
    let answer = ask(99, &[("action", "clientlogin"), ("username", "carol"), ("password", PASSWORD)]);
    assert!(answer.text().contains("PASS"), "{}", answer.text());
}

/// One action reads the name from `lgname`, the other one from `username`: a success of the one is none for the field of the other.
#[test]
fn a_login_of_ones_own_is_no_success_of_another_name_beside_it_at_mediawiki() {
    let wiki = MediaWiki::start();
    let gateway = wiki.guarded();
    let ask = |from: &str, fields: &[(&str, &str)]| {
        let (cookies, token) = wiki.login_form();
        let tokens = [
            ("format", "json"),
            ("lgtoken", &*token),
            ("logintoken", &token),
            ("loginreturnurl", "http://app.example/"),
        ];
        let request = gateway.post("/api.php").from(from).header("Cookie", &cookies);
        request.form(&form(&[&tokens[..], fields].concat())).send()
    };
    for round in 0..12 {
        let own = [("action", "login"), ("lgname", "Mallory"), ("lgpassword", PASSWORD), ("username", "bob")];
        let answer = ask("127.0.0.66", &own);
        assert!(answer.text().contains("Success") || answer.status == 429, "{}", answer.text());
        let guess = [("action", "clientlogin"), ("username", "bob"), ("password", "guess")];
        ask(if round % 2 == 0 { "127.0.0.66" } else { "127.0.1.1" }, &guess);
    }
    let judged = wiki.judged("bob");
    assert!(judged <= 5, "{judged} guesses");
}

/// However a program's login began, the cookie that keeps its user logged in is no success of anybody else.
#[test]
fn a_login_of_a_program_is_known_whatever_else_its_request_says_at_mediawiki() {
    let wiki = MediaWiki::start();
    let kept = |gateway: &Gateway, beside: (&str, &str)| {
        let (cookies, token) = wiki.login_form();
        let own = [
            ("action", "clientlogin"),
            ("username", "mallory"),
            ("password", PASSWORD),
            ("rememberMe", "1"),
            ("format", "json"),
            ("logintoken", &token),
            ("loginreturnurl", "http://app.example/"),
            beside,
        ];
        let request = gateway.post("/api.php").from("127.0.0.66").header("Cookie", &cookies).form(&form(&own));
        let mut jar = Jar::default();
        jar.take(&request.send());
        let kept = jar.without("_session").header();
        assert!(kept.contains("Token="), "{kept}");
        kept
    };
    for (name, beside) in [("erin", ("requestid", "error")), ("carol", ("lgname", "decoy"))] {
        let gateway = wiki.guarded();
        let kept = kept(&gateway, beside);
        buys_nothing(&wiki, &gateway, name, |from| {
            let fields = form(&[("wpName", name), ("wpPassword", "guess"), ("title", "Special:Random")]);
            gateway.post("/index.php").from(from).header("Cookie", &kept).form(&fields).send();
        });
    }
}

/// Somebody who comes with the cookie of "keep me logged in" alone gets the cookies of a login from any page, also with a
/// redirect.
#[test]
fn the_cookie_that_keeps_one_logged_in_is_no_success_of_anybody_else_at_mediawiki() {
    let wiki = MediaWiki::start();
    let gateway = wiki.guarded();
    let kept = wiki.jar_of(&gateway, "127.0.0.66", "mallory").without("_session").header();
    let forged = |name: &str, from: &str| {
        let fields = form(&[("wpName", name), ("wpPassword", "guess"), ("title", "Special:Random")]);
        gateway.post("/index.php").from(from).header("Cookie", &kept).form(&fields).send()
    };
    let answer = forged("nobody", "127.0.0.65");
    assert!(wiki.is_success(&answer), "it looks like one: {} {:?}", answer.status, answer.headers.all("set-cookie"));
    buys_nothing(&wiki, &gateway, "dave", |from| {
        forged("dave", from);
    });
}
