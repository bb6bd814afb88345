//! Roundcube behind `config/login-roundcube.yaml`.

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

/// A running webmail of Debian's package and its mail server, until it is dropped.
#[derive(Debug)]
struct Roundcube {
    server: Program,
    _mail: Program,
    folder: TempDir,
}

impl Roundcube {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the webmail");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("config")).expect("a folder in the folder");
        for name in ["defaults.inc.php", "mimetypes.php"] {
            php::copy(&format!("/etc/roundcube/{name}"), &at("config"));
        }
        for (name, text) in [
            ("config/config.inc.php", include_str!("roundcube/config.inc.php")),
            ("imap.py", include_str!("roundcube/imap.py")),
        ] {
            fs::write(at(name), text).expect("a file in the folder");
        }
        let tables =
            "(new PDO('sqlite:mail.sqlite'))->exec(file_get_contents('/usr/share/roundcube/SQL/sqlite.initial.sql'));";
        php::said_by(Command::new("php").current_dir(folder.path()).args(["-r", tables]));
        let mail = Program::start(&[], |_, address| {
            let mut command = Command::new("env");
            command.arg("-C").arg(folder.path()).args(["/usr/bin/python3", "imap.py", &address.port().to_string()]);
            command
        });
        let server = Program::start(&[], |_, address| {
            let mut command = php::serving(Path::new("/var/lib/roundcube/public_html"), address);
            command.env("ROUNDCUBE_CONFIG_DIR", at("config")).env("IMAP_PORT", mail.address().port().to_string());
            command
        });
        Self { server, _mail: mail, folder }
    }

    fn guarded(&self) -> Gateway {
        recipe("login-roundcube.yaml", self.server.address(), &[])
    }
}

/// A session before the login, and its token.
fn login_form(page: &Response) -> (String, String) {
    let mut jar = Jar::default();
    jar.take(page);
    (jar.header(), between(&page.text(), "name=\"_token\" value=\"", "\""))
}

/// Hands the form in at an address.
fn hand_in(gateway: &Gateway, target: &str, from: &str, name: &str, password: &str) -> Response {
    let (cookies, token) = login_form(&gateway.get("/").from(from).send());
    let fields = [("_task", "login"), ("_action", "login"), ("_token", &token), ("_user", name), ("_pass", password)];
    gateway.post(target).from(from).header("Cookie", &cookies).form(&form(&fields)).send()
}

impl Login for Roundcube {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn form(&self) -> String {
        "/?_task=login:_user=^USER^&_pass=^PASS^:S=sessauth".to_owned()
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        hand_in(gateway, "/?_task=login", from, name, password)
    }

    fn is_success(&self, answer: &Response) -> bool {
        let mut jar = Jar::default();
        jar.take(answer);
        answer.status == 302 && jar.header().contains("roundcube_sessauth")
    }

    fn judged(&self, name: &str) -> usize {
        let told = fs::read(self.folder.path().join("told")).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        told.lines().filter(|line| line.strip_prefix("judged ") == Some(name)).count()
    }
}

#[test]
fn however_a_guess_is_written_down_roundcube_asks_for_no_more_than_the_limit_says() {
    let mail = Roundcube::start();
    let gateway = mail.guarded();
    // A session before the login has a token that is good once. The name may stand anywhere, the token in the address.
    let guesses = guesses("_user", &[("_pass", "guess"), ("_task", "login"), ("_action", "login")], "alice", 100);
    all_guesses_count(&mail, &gateway, "alice", &guesses, |to, from, guess| {
        let (cookies, token) = login_form(&Request::new(mail.address(), "GET", "/").send());
        let request = Request::new(to, "POST", "/?_task=login").from(from).header("Cookie", &cookies);
        request.header("X-Roundcube-Request", &token).body(&guess.content_type, &guess.body).send()
    });
    assert!(mail.gets_in(&gateway, "127.200.0.9", "bob"), "another user");
}

/// Otherwise nobody would know whose session it is, and what it is shown with would be a success of another name.
#[test]
fn a_login_of_roundcube_that_a_script_asks_for_is_one_though_it_redirects_nowhere() {
    let mail = Roundcube::start();
    let gateway = mail.guarded();
    let log_in = || hand_in(&gateway, "/?_task=login&_remote=1", "127.0.0.66", "mallory", PASSWORD);
    assert_eq!((0..8).map(|_| log_in().status).collect::<Vec<_>>(), [200; 8]);
}

/// With a session of one's own, the page of the mailbox comes whatever the request says.
#[test]
fn a_session_of_ones_own_is_no_success_of_anybody_else_at_roundcube() {
    let mail = Roundcube::start();
    let gateway = mail.guarded();
    let mut own = Jar::default();
    let answer = mail.log_in(&gateway, "127.0.0.66", "mallory", PASSWORD);
    assert!(mail.is_success(&answer), "{}", answer.text());
    own.take(&answer);
    let own = own.header();
    buys_nothing(&mail, &gateway, "bob", |from| {
        let fields = form(&[("_user", "bob"), ("_pass", "guess"), ("_task", "mail")]);
        let answer = gateway.post("/?_task=mail").from(from).header("Cookie", &own).form(&fields).send();
        assert!(answer.status < 500, "{}", answer.status);
    });
}
