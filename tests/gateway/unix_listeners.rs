//! A gateway that listens on a Unix socket, behind nginx and HAProxy.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{Gateway, Haproxy, Nginx, Origin, Request, eventually};

/// Where a gateway listens, and the application behind it.
struct Site {
    origin: Origin,
    folder: TempDir,
}

impl Site {
    fn new() -> Self {
        Self { origin: Origin::start(), folder: TempDir::new().expect("a folder") }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("gateway.sock")
    }

    /// A configuration that listens on the socket with these options, and has these lines too.
    fn config(&self, options: &str, rest: &str) -> String {
        let listener = format!("{{address: \"unix:{}\"{options}}}", self.socket().display());
        let admin = "admin: {address: 127.0.0.1:0}";
        let trusted = "client_ip: {trusted_proxies: [127.0.0.1]}";
        format!("listen: [{listener}]\nupstream: {}\n{admin}\n{trusted}\n{rest}", self.origin.url())
    }

    fn start(&self, options: &str, rest: &str) -> Gateway {
        Gateway::start(self.config(options, rest))
    }
}

/// What the server at `socket` answers to this; empty: nobody listens there.
fn answer(socket: &Path, request: &str) -> String {
    let Ok(mut stream) = UnixStream::connect(socket) else { return String::new() };
    stream.write_all(request.as_bytes()).expect("it is connected");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers, and closes");
    answer
}

/// The status that a request for `/` gets, which a proxy sends for `client`.
fn status(socket: &Path, client: &str) -> u16 {
    let request = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-For: {client}\r\nConnection: close\r\n\r\n");
    answer(socket, &request).split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn clients_behind_a_proxy_are_told_apart_on_a_unix_socket() {
    let site = Site::new();
    let gateway = site.start("", "limits: [{name: of-the-client, key: client_ip, rate: 2/hour}]");
    assert_eq!(mode(&site.socket()), 0o660);
    let of = |client: &str| [(); 3].map(|()| status(&site.socket(), client));
    assert_eq!(of("203.0.113.1"), [200, 200, 429]);
    assert_eq!(of("203.0.113.2"), [200, 200, 429]);
    assert_eq!(site.origin.last().header("x-forwarded-for"), Some("203.0.113.2, 127.0.0.1"));
    let shown: serde_json::Value =
        serde_json::from_str(&gateway.admin_request("GET", "/api/v1/status").send().text()).expect("JSON");
    assert_eq!(shown["listeners"][0], format!("unix:{}", site.socket().display()));
}

#[test]
fn nginx_forwards_to_a_unix_socket_and_bodies_and_many_requests_pass() {
    let site = Site::new();
    let _gateway = site.start("", "");
    let nginx = Nginx::start(
        &format!(
            "upstream gateway {{ server unix:{}; keepalive 4; }}\nserver {{\nlisten LISTEN;\nlocation / {{\n\
             proxy_pass http://gateway;\nproxy_http_version 1.1;\nproxy_set_header Connection \"\";\n\
             proxy_set_header X-Forwarded-For $remote_addr;\n}}\n}}",
            site.socket().display()
        ),
        &[],
    );
    for number in 0..50 {
        let body = "a".repeat(number * 4000);
        assert_eq!(Request::new(nginx.address(), "POST", "/upload").body("text/plain", &body).status(), 200);
        assert_eq!(site.origin.last().body.len(), body.len());
    }
    assert_eq!(site.origin.last().header("x-real-ip"), Some("127.0.0.1"));
}

#[test]
fn haproxy_says_who_connects_with_a_proxy_header_on_a_unix_socket() {
    let site = Site::new();
    let gateway = site.start(", proxy_protocol: true", "");
    let haproxy = Haproxy::in_front_of(format!("unix@{}", site.socket().display()), "send-proxy-v2");
    assert_eq!(Request::new(haproxy.address(), "GET", "/a").status(), 200);
    assert_eq!(gateway.log_line("/a")["client"], "127.0.0.1");
    let mut stranger = UnixStream::connect(site.socket()).expect("it listens");
    stranger.write_all(b"PROXY TCP4 203.0.113.7 203.0.113.8 5000 80\r\nGET /b HTTP/1.0\r\n\r\n").expect("connected");
    stranger.shutdown(Shutdown::Write).expect("connected");
    let mut answer = String::new();
    stranger.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(gateway.log_line("/b")["client"], "203.0.113.7");
}

#[test]
fn a_socket_that_was_left_behind_is_taken_and_one_in_use_is_not() {
    let site = Site::new();
    let mut gateway = site.start("", "");
    let other = Gateway::failing(site.config("", ""));
    assert_eq!(other.0.code(), Some(1));
    assert!(other.1.contains(&format!("cannot listen on unix:{}", site.socket().display())), "{}", other.1);
    assert!(other.1.contains("the address is already in use"), "{}", other.1);
    gateway.kill();
    assert!(site.socket().exists());
    assert_eq!(status(&site.socket(), "203.0.113.1"), 0);
    let mut gateway = site.start("", "");
    assert_eq!(status(&site.socket(), "203.0.113.1"), 200);
    gateway.signal("TERM");
    gateway.ended();
    assert!(!site.socket().exists());
}

#[test]
fn a_reload_adds_a_unix_socket_changes_its_mode_and_removes_it() {
    let site = Site::new();
    let plain = format!("listen: 127.0.0.1:0\nupstream: {}", site.origin.url());
    let gateway = Gateway::start(&plain);
    gateway.reload(site.config("", ""));
    assert_eq!((status(&site.socket(), "203.0.113.1"), mode(&site.socket())), (200, 0o660));
    gateway.reload(site.config(", mode: 0600", ""));
    assert_eq!((status(&site.socket(), "203.0.113.1"), mode(&site.socket())), (200, 0o600));
    gateway.reload(&plain);
    eventually("the file is removed", || !site.socket().exists());
}

#[test]
fn a_takeover_keeps_the_socket() {
    let site = Site::new();
    let mut gateway = site.start("", "");
    let mut waiting = UnixStream::connect(site.socket()).expect("it listens");
    let mut next = gateway.successor();
    assert_eq!(status(&site.socket(), "203.0.113.1"), 200);
    waiting.write_all(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").expect("connected");
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    gateway.ended();
    assert_eq!(status(&site.socket(), "203.0.113.1"), 200);
    // It goes with the last one, also over several takeovers.
    let mut last = next.successor();
    next.ended();
    assert_eq!(status(&site.socket(), "203.0.113.1"), 200);
    last.signal("TERM");
    last.ended();
    assert!(!site.socket().exists());
}

#[test]
fn a_unix_socket_of_the_service_manager_is_used_and_left() {
    let site = Site::new();
    let socket = UnixListener::bind(site.socket()).expect("a folder to write to");
    let mut gateway = Gateway::activated(site.config("", ""), socket);
    assert_eq!(status(&site.socket(), "203.0.113.1"), 200);
    let mut next = gateway.successor();
    gateway.ended();
    assert_eq!(status(&site.socket(), "203.0.113.1"), 200);
    next.signal("TERM");
    next.ended();
    assert!(site.socket().exists());
}

#[test]
fn what_cannot_be_made_is_said() {
    let folder = TempDir::new().expect("a folder");
    let refused = |path: &str| {
        let config = format!("listen: 'unix:{}/{path}'\nupstream: http://127.0.0.1:9", folder.path().display());
        Gateway::failing(config).1
    };
    assert!(refused("missing/gateway.sock").contains("its folder does not exist"));
    fs::write(folder.path().join("taken"), "").expect("a folder to write to");
    assert!(refused("taken").contains("a file is there that is no socket"));
}
