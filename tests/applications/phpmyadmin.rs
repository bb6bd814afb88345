//! phpMyAdmin behind `config/login-phpmyadmin.yaml`.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use tempfile::TempDir;

use crate::alphabet::guesses;
use crate::attack::{Login, all_guesses_count, buys_nothing, form};
use crate::jar::{Jar, between};
use crate::php;
use crate::support::{Gateway, Program, Request, Response, recipe};

const PASSWORD: &str = "correct horse";
/// Stands for the token of a form.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const LOGIN: &str = "/phpmyadmin/index.php?route=/";

/// A running phpMyAdmin of Debian's package and its database, until it is dropped.
#[derive(Debug)]
struct PhpMyAdmin {
    server: Program,
    _database: Program,
    folder: TempDir,
}

impl PhpMyAdmin {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the site");
        let (site, temporary) = (folder.path().join("site"), folder.path().join("tmp"));
        for made in [&site, &temporary] {
            fs::create_dir(made).expect("a folder in the folder");
        }
        php::copy("/usr/share/phpmyadmin", &site.join("phpmyadmin"));
        let vendor = site.join("phpmyadmin/libraries/vendor_config.php");
        let text = fs::read_to_string(&vendor).expect("where the package has its files");
        let text = text.replace("'/etc/phpmyadmin/config.inc.php'", "ROOT_PATH . 'config.inc.php'");
        let text = text.replace("/var/lib/phpmyadmin/tmp/", &format!("{}/", temporary.display()));
        for (path, text) in
            [(vendor, &*text), (site.join("phpmyadmin/config.inc.php"), include_str!("phpmyadmin/config.inc.php"))]
        {
            fs::write(path, text).expect("a file in the folder");
        }
        let database = php::database(folder.path(), "shop");
        let users =
            ["alice", "bob", "mallory"].map(|name| format!("CREATE USER {name}@localhost IDENTIFIED BY '{PASSWORD}';"));
        // The server counts the connections of each user, refused ones too.
        let told = format!(
            "{}INSTALL SONAME 'server_audit'; SET GLOBAL server_audit_file_path='{}', GLOBAL server_audit_events='CONNECT', GLOBAL server_audit_logging=ON;",
            users.concat(),
            folder.path().join("told").display()
        );
        let mut client = Command::new("mariadb");
        php::said_by(client.current_dir(folder.path()).args([
            "--no-defaults",
            "-S",
            "database.sock",
            "-u",
            "root",
            "-e",
            &told,
        ]));
        Self { server: php::built_in(&site), _database: database, folder }
    }

    fn guarded(&self) -> Gateway {
        recipe("login-phpmyadmin.yaml", self.server.address(), &[])
    }
}

/// A session before the login, and its token, which is good for one guess.
fn login_form(page: &Response) -> (String, String) {
    let mut jar = Jar::default();
    jar.take(page);
    (jar.header(), between(&page.text(), "name=\"token\" value=\"", "\""))
}

/// Hands the form in with these fields.
fn hand_in(gateway: &Gateway, from: &str, fields: &[(&str, &str)]) -> Response {
    let (cookies, token) = login_form(&gateway.get("/phpmyadmin/").from(from).send());
    let fields = [&[("token", &*token), ("server", "1")], fields].concat();
    gateway.post(LOGIN).from(from).header("Cookie", &cookies).form(&form(&fields)).send()
}

impl Login for PhpMyAdmin {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn form(&self) -> String {
        format!("{LOGIN}:pma_username=^USER^&pma_password=^PASS^:S=pmaAuth")
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        hand_in(gateway, from, &[("pma_username", name), ("pma_password", password)])
    }

    fn is_success(&self, answer: &Response) -> bool {
        let mut jar = Jar::default();
        jar.take(answer);
        answer.status == 302 && jar.header().contains("pmaAuth-1")
    }

    fn judged(&self, name: &str) -> usize {
        let told = fs::read(self.folder.path().join("told")).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        // time,server,user,host,connection,query,event,database,object,code
        let tried = |line: &&str| {
            let fields: Vec<&str> = line.split(',').collect();
            fields.get(2) == Some(&name) && matches!(fields.get(6), Some(&"CONNECT" | &"FAILED_CONNECT"))
        };
        told.lines().filter(tried).count()
    }
}

#[test]
fn however_a_guess_is_written_down_phpmyadmin_asks_for_no_more_than_the_limit_says() {
    let site = PhpMyAdmin::start();
    let gateway = site.guarded();
    let guesses =
        guesses("pma_username", &[("pma_password", "guess"), ("server", "1"), ("token", TOKEN)], "alice", 100);
    all_guesses_count(&site, &gateway, "alice", &guesses, |to, from, guess| {
        let (cookies, token) = login_form(&Request::new(site.address(), "GET", "/phpmyadmin/").send());
        let body = String::from_utf8_lossy(&guess.body).replace(TOKEN, &token);
        Request::new(to, "POST", LOGIN).from(from).header("Cookie", &cookies).body(&guess.content_type, &body).send()
    });
    assert!(site.gets_in(&gateway, "127.200.0.9", "bob"), "another user");
}

/// The cookie of somebody who is signed in is new in each answer.
#[test]
fn a_session_of_ones_own_is_no_success_of_anybody_else_at_phpmyadmin() {
    let site = PhpMyAdmin::start();
    let gateway = site.guarded();
    let mut own = Jar::default();
    let answer = site.log_in(&gateway, "127.0.0.66", "mallory", PASSWORD);
    assert!(site.is_success(&answer), "{}", answer.text());
    own.take(&answer);
    let own = std::cell::RefCell::new(own);
    buys_nothing(&site, &gateway, "bob", |from| {
        let fields = form(&[("pma_username", "bob"), ("x", "1")]);
        let cookies = own.borrow().header();
        // Where phpMyAdmin does not look for it.
        let answer =
            gateway.post(&format!("{LOGIN}&{fields}")).from(from).header("Cookie", &cookies).form("x=1").send();
        assert!(answer.status < 500, "{}", answer.status);
        own.borrow_mut().take(&answer);
    });
}

/// A script that logs in again gets a page instead of a redirect, the last of two names is the one that counts, and base64 has many
/// spellings. Without a token phpMyAdmin drops all fields of a form, and goes on with the session.
#[test]
fn however_a_session_began_it_is_no_success_of_anybody_else_at_phpmyadmin() {
    let site = PhpMyAdmin::start();
    let own = [("pma_password", PASSWORD), ("pma_username", "mallory")];
    for (name, beside, before) in
        [("alice", ("session_timedout", "1"), ""), ("bob", ("pma_username", "decoy"), ""), ("alice", ("x", "1"), "%21")]
    {
        let gateway = site.guarded();
        let mut jar = Jar::default();
        jar.take(&hand_in(&gateway, "127.0.0.66", &[&[beside], &own[..]].concat()));
        assert!(jar.header().contains("pmaAuth-1"), "{jar:?}");
        let jar = std::cell::RefCell::new(jar);
        buys_nothing(&site, &gateway, name, |from| {
            let request = gateway.post("/phpmyadmin/index.php?route=/collation-connection").from(from);
            let cookies = jar.borrow().header().replace("pmaAuth-1=", &format!("pmaAuth-1={before}"));
            let answer = request.header("Cookie", &cookies).form(&form(&[("pma_username", name)])).send();
            assert!(site.is_success(&answer) || answer.status == 429, "it looks like a success: {}", answer.status);
            jar.borrow_mut().take(&answer);
        });
    }
}
