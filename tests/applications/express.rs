//! Express behind `config/login-express.yaml`.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use tempfile::TempDir;

use crate::attack::{Asked, Login, a_thousand_words_find_nothing, buys_nothing, form, readings_are_throttled};
use crate::support::{Gateway, Program, Request, Response, recipe};

const PASSWORD: &str = "correct horse";

/// A running application of Debian's `node-express`, until it is dropped.
#[derive(Debug)]
struct Express {
    server: Program,
    folder: TempDir,
}

impl Express {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for what it tells");
        let told = folder.path().join("told");
        let server = Program::start(&[("app.js", include_str!("express/app.js"))], |_, address| {
            let mut command = Command::new("node");
            let (host, port) = (address.ip().to_string(), address.port().to_string());
            // Where Debian's packages of modules are.
            command.env("NODE_PATH", "/usr/share/nodejs").args(["app.js", &host, &port]).arg(&told);
            command
        });
        Self { server, folder }
    }

    fn guarded(&self) -> Gateway {
        recipe("login-express.yaml", self.server.address(), &[])
    }
}

impl Login for Express {
    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn form(&self) -> String {
        "/login:username=^USER^&password=^PASS^:S=Location\\: /account".to_owned()
    }

    fn password(&self) -> &'static str {
        PASSWORD
    }

    fn log_in(&self, gateway: &Gateway, from: &str, name: &str, password: &str) -> Response {
        gateway.post("/login").from(from).form(&form(&[("username", name), ("password", password)])).send()
    }

    fn is_success(&self, answer: &Response) -> bool {
        answer.header("location") == Some("/account")
    }

    fn judged(&self, name: &str) -> usize {
        let told = fs::read_to_string(self.folder.path().join("told")).unwrap_or_default();
        told.lines().filter(|line| line.strip_prefix("judged ") == Some(name)).count()
    }
}

#[test]
fn a_thousand_words_do_not_find_a_password_of_express() {
    let express = Express::start();
    a_thousand_words_find_nothing(&express, &express.guarded());
}

#[test]
fn what_looks_like_a_success_of_express_buys_nothing() {
    let express = Express::start();
    let own = Request::new(express.address(), "POST", "/login");
    let own = own.form(&form(&[("username", "mallory"), ("password", PASSWORD)])).send();
    let own =
        own.headers.all("set-cookie").pop().and_then(|line| line.split(';').next()).expect("a session").to_owned();
    let shapes: [(&str, &str, Option<&str>, String); 5] = [
        // Back to the form with the account in the address, and with the cookie that everybody gets.
        ("alice", "/login?next=/account", None, "username=alice&password=guess".to_owned()),
        // A redirect to the account, because another user is logged in.
        ("bob", "/login", Some(&own), "username=bob&password=guess".to_owned()),
        ("carol", "/login", Some(&own), "username=carol".to_owned()),
        // As another user, with the name where the application does not look.
        ("dave", "/login?username=dave", None, "username=mallory&password=correct+horse".to_owned()),
        ("erin", "/login", None, "USERNAME=erin&username=mallory&password=correct+horse".to_owned()),
    ];
    for (name, target, cookie, body) in shapes {
        let gateway = express.guarded();
        buys_nothing(&express, &gateway, name, |from| {
            let request = gateway.post(target).from(from).form(&body);
            let answer = cookie.iter().fold(request, |request, cookie| request.header("Cookie", cookie)).send();
            assert!(matches!(answer.status, 302 | 429), "{target} {body}: {}", answer.status);
        });
    }
}

#[test]
fn however_its_path_is_spelled_the_login_of_express_is_throttled() {
    let express = Express::start();
    let gateway = express.guarded();
    let ask = |to: Asked, target: &str| {
        let address = if to == Asked::Application { express.address() } else { gateway.address() };
        let fields = form(&[("username", "bob"), ("password", "guess")]);
        Request::new(address, "POST", target).from("127.0.3.1").form(&fields).send()
    };
    let read = readings_are_throttled(&express, &gateway, "bob", &TARGETS, ask);
    assert!(read >= 7, "{read} readings");
}

/// Spellings of the login's path.
const TARGETS: [&str; 30] = [
    "/login",
    "/login/",
    "/LOGIN",
    "/Login/",
    "/%6cogin",
    "/%4cogin/",
    "/logi%6e?x",
    "/login?/x",
    "/login?x=/../y",
    "/login/?",
    "//login",
    "/login//",
    "/./login",
    "/%2e/login",
    "/x/../login",
    "/login/.",
    "/login/x/..",
    "/login;x",
    "/login;/x",
    "/login%00",
    "/login%20",
    "/login.",
    "/login%2f",
    "/login%3f",
    "/login%23",
    "/login%5c",
    "/%2flogin",
    "/%256cogin",
    "/l%C3%B6gin",
    "/lo\\gin",
];
