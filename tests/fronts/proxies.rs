//! Real proxies, with exactly the ready configurations of `config/with`.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use crate::support::{Exchange, Gateway, Origin, Program, Request, Stopwatch, check_judged_targets, dropped_headers};

/// A proxy that asks a gateway, in front of an application.
pub(crate) struct Asking {
    pub(crate) origin: Origin,
    pub(crate) gateway: Gateway,
    proxy: Program,
}

/// A ready configuration.
pub(crate) struct Ready<'t> {
    pub(crate) text: &'t str,
    /// How it names the address to listen on, and how it would name another one.
    pub(crate) listen: &'t str,
    pub(crate) listen_on: fn(SocketAddr) -> String,
    /// Files that it needs beside it.
    pub(crate) files: &'t [(&'t str, &'t str)],
}

/// Starts a proxy. `command` gets the folder in which its ready configuration is the file `ready`, with the addresses of this
/// test. `rules` is the configuration of the gateway without a listener.
pub(crate) fn start(ready: &Ready<'_>, rules: &str, command: impl Fn(&Path, SocketAddr) -> Command) -> Asking {
    let &Ready { text, listen, listen_on, files } = ready;
    let origin = Origin::scripted(application);
    let gateway = Gateway::with_files(
        format!("listen: {{address: 127.0.0.1:0, serves: decisions}}\nupstream: http://127.0.0.1:9\n{rules}"),
        &[("slow-down.html", PAGE)],
    );
    let proxy = Program::start(files, |folder, address| {
        let place = |text: &str| {
            let mut text = text.to_owned();
            for (written, meant) in [
                (listen, listen_on(address)),
                ("127.0.0.1:8000", origin.address().to_string()),
                ("127.0.0.1:9191", gateway.address().to_string()),
                ("/etc/portcullis", folder.display().to_string()),
            ] {
                text = text.replace(written, &meant);
            }
            text
        };
        assert!(
            text.contains(listen) && text.contains("127.0.0.1:8000"),
            "the ready configuration names the addresses"
        );
        fs::write(folder.join("ready"), place(text)).expect("a file in the folder");
        for (name, text) in files {
            fs::write(folder.join(name), place(text)).expect("a file in the folder");
        }
        command(folder, address)
    });
    Asking { origin, gateway, proxy }
}

/// A ready file with another text in the place of one that it has.
pub(crate) fn replaced(file: &str, written: &str, meant: &str) -> String {
    assert!(file.contains(written), "the ready file has no {written}");
    file.replace(written, meant)
}

/// Answers everything with 200, and takes upgrades, after which it sends back what it gets.
fn application(mut exchange: Exchange) {
    while let Some(received) = exchange.request() {
        if let Some(protocol) = received.header("upgrade") {
            exchange.write(format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: {protocol}\r\n\
                 Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
            ));
            let mut stream = exchange.into_stream();
            let mut said = [0; 5];
            let _ = stream.read_exact(&mut said).and_then(|()| stream.write_all(&said));
            return;
        }
        if !exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") {
            return;
        }
    }
}

impl Asking {
    pub(crate) fn request(&self, method: &str, target: &str) -> Request {
        Request::new(self.proxy.address(), method, target)
    }

    fn login(&self) -> Request {
        self.request("POST", "/login").header("Accept", "text/html").form("username=alice&password=x")
    }

    /// Five logins pass, whatever the client says of itself, and the sixth is denied as the gateway denies it.
    #[track_caller]
    pub(crate) fn check_sixth_login(&self) {
        let client = "127.0.0.61";
        for number in 0..5 {
            let answer = self.login().from(client).send();
            assert_eq!(answer.status, 200, "login {number}: {}", answer.text());
            assert_eq!(self.origin.last().text(), "username=alice&password=x");
        }
        assert_eq!(self.origin.count(), 5);
        let denied = self.login().from(client).send();
        assert_eq!(denied.status, 429, "{}", denied.text());
        let wait: u64 = denied.header("retry-after").expect("a wait").parse().expect("a number");
        assert!((1..=60).contains(&wait), "{wait}");
        assert!(denied.text().contains("<title>Too many requests</title>"), "{}", denied.text());
        assert_eq!(denied.header("cache-control"), Some("no-store"));
        for (name, value) in FORGED {
            let answer = self.login().from(client).header(name, value).send();
            assert!(!(200..300).contains(&answer.status), "{name}: {value} passes");
        }
        assert_eq!(self.origin.count(), 5);
        // Another client has logins of its own, and another page of the same client none of them.
        assert_eq!(self.login().from("127.0.0.62").status(), 200);
        assert_eq!(self.request("GET", "/login").from(client).status(), 200);
    }

    /// Headers by which a client might describe itself change nothing, and do not reach the application.
    #[track_caller]
    pub(crate) fn check_forged(&self) {
        let request =
            FORGED.iter().fold(self.request("GET", "/page"), |request, (name, value)| request.header(name, value));
        assert_eq!(request.from("127.0.0.63").status(), 200);
        let line = self.gateway.log_line("/page");
        assert_eq!((&line["client"], &line["method"]), (&"127.0.0.63".into(), &"GET".into()));
        let received = self.origin.last();
        for (name, value) in FORGED {
            let seen = received.headers.all(name);
            assert!(seen.iter().all(|seen| !seen.contains(value)), "{name}: {seen:?} reaches the application");
        }
    }

    /// What the gateway does not pass on, the proxy does not pass on either.
    #[track_caller]
    pub(crate) fn check_dropped(&self) {
        let names = dropped_headers();
        // Servers take about a hundred headers.
        for names in names.chunks(20) {
            let request =
                names.iter().fold(self.request("GET", "/page"), |request, name| request.header(name, "forged"));
            assert_eq!(request.from("127.0.0.63").status(), 200, "{names:?}");
            let received = self.origin.last();
            let passed =
                names.iter().filter(|name| received.headers.all(name).iter().any(|seen| seen.contains("forged")));
            assert_eq!(passed.collect::<Vec<_>>(), Vec::<&&str>::new());
        }
    }

    /// A `WebSocket` goes through once the gateway has let its request pass, and no other upgrade does.
    #[track_caller]
    pub(crate) fn check_websocket(&self) {
        let upgrade = || {
            let request = self.request("GET", "/live").from("127.0.0.67").header("Connection", "Upgrade");
            let request = request.header("Upgrade", "websocket").header("Sec-WebSocket-Version", "13");
            request.header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        };
        let mut client = upgrade().connect();
        client.send(upgrade().bytes());
        let answer = client.head();
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        client.send("hello");
        let mut heard = Vec::new();
        while heard.len() < 5 {
            heard.extend(client.some());
        }
        assert_eq!(heard, b"hello");
        assert_eq!(upgrade().status(), 429);
        // Behind another protocol, the proxy would ask about no further request.
        for asked_for in [&["h2c"][..], &["h2c, websocket"], &["h2c", "websocket"], &["websocket", "h2c"]] {
            let other = self.request("GET", "/page").header("Connection", "Upgrade, HTTP2-Settings");
            let other = other.header("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA");
            let other = asked_for.iter().fold(other, |request, protocol| request.header("Upgrade", protocol));
            let answer = other.connect().send(other.bytes()).try_response("GET");
            let received = self.origin.last();
            let offered = received.headers.all("upgrade");
            assert!(!offered.concat().contains("h2c"), "{asked_for:?}: {offered:?} reaches the application");
            assert!(asked_for != ["h2c"] || answer.is_some_and(|answer| answer.status == 200));
        }
    }

    /// The proxy waits no longer for a gateway that hangs than its file says, and forwards nothing.
    #[track_caller]
    pub(crate) fn check_closed_while_the_gateway_hangs(&self, expected: u16) {
        assert_eq!(self.request("GET", "/page").status(), 200);
        self.gateway.pause();
        let before = self.origin.count();
        let watch = Stopwatch::start();
        let status = self.request("GET", "/page").status();
        assert_eq!(status, expected);
        assert!(watch.elapsed() < Duration::from_secs(20), "{:?}", watch.elapsed());
        self.gateway.resume();
        assert_eq!(self.origin.count(), before);
    }

    /// However the path of a login is spelled, what is judged is what is forwarded.
    #[track_caller]
    pub(crate) fn check_targets(&self) {
        check_judged_targets(&self.origin, &self.gateway, |target| self.request("GET", target));
    }

    /// Of many at once never more pass than the limit allows.
    #[track_caller]
    pub(crate) fn check_many_at_once(&self) {
        let before = self.origin.count();
        let passed = thread::scope(|scope| {
            let threads: Vec<_> = (0..64).map(|_| scope.spawn(|| self.login().from("127.0.0.65").status())).collect();
            threads.into_iter().map(|thread| thread.join().expect("an answer")).filter(|status| *status == 200).count()
        });
        assert_eq!((passed, self.origin.count() - before), (5, 5));
    }

    /// While the gateway is away, nothing is forwarded.
    #[track_caller]
    pub(crate) fn check_closed_without_gateway(&mut self) {
        self.gateway.kill();
        let before = self.origin.count();
        for _ in 0..3 {
            let status = self.request("GET", "/page").status();
            assert!(status >= 500, "{status}");
        }
        assert_eq!(self.origin.count(), before);
    }

    /// A delay holds the answer of the proxy.
    #[track_caller]
    pub(crate) fn check_delay(&self) {
        let slow = || self.request("GET", "/slow").from("127.0.0.66").status();
        assert_eq!(slow(), 200);
        let watch = Stopwatch::start();
        assert_eq!(slow(), 200);
        assert!(watch.elapsed().as_millis() >= 300);
    }
}

/// Five logins a minute, a page of ours, a delay, and the query in the log.
pub(crate) const RULES: &str = "\
log: {level: info, format: json, requests: true, query: true}
deny_response: {body_file: slow-down.html}
routes:
  - {name: login, match: POST /login, limits: [{name: pace, key: client_ip, rate: 5/minute}]}
  - {name: account, match: POST /account, limits: [{name: account, key: param.username, headers: full, rate: 1/minute}]}
  - {name: login-page, match: /login}
  - {name: live, match: /live, limits: [{name: live, key: client_ip, rate: 1/minute}]}
  - {name: slow, match: /slow, limits: [{name: slow, key: client_ip, rate: 1/minute, then: {delay: 300ms}}]}";

/// The page of [`RULES`].
pub(crate) const PAGE: &str = include_str!("../../config/pages/slow-down.html");

const FORGED: [(&str, &str); 18] = [
    ("X-Forwarded-For", "198.51.100.1"),
    ("X-Forwarded-Method", "OPTIONS"),
    ("X-Forwarded-Proto", "gopher"),
    ("X-Forwarded-Host", "forged.example"),
    ("X-Forwarded-Uri", "/forged"),
    ("X-Original-Method", "OPTIONS"),
    ("X-Original-URI", "/forged"),
    ("X-Original-URL", "http://forged.example/"),
    ("X-Rewrite-URL", "/forged"),
    ("X-Envoy-Original-Path", "/forged"),
    ("X-Envoy-External-Address", "198.51.100.1"),
    ("X-Real-IP", "198.51.100.1"),
    ("Forwarded", "for=198.51.100.1"),
    ("X_Forwarded_For", "198.51.100.1"),
    ("X-Forwarded_For", "198.51.100.1"),
    ("X_Rewrite_URL", "/forged"),
    ("X_Real-IP", "198.51.100.1"),
    ("X-Forwarded-Prefix", "/forged"),
];
