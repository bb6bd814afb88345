//! The Python package `websockets` as client and as application, through the gateway, in clear and over TLS.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::site::Site;
use crate::support::{Stopwatch, eventually, python};

/// A program that is told something and says something, in lines; killed when it is dropped.
#[derive(Debug)]
struct Dialogue {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Dialogue {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python runs");
        let orders = child.stdin.take().expect("piped");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, orders, lines }
    }

    /// The next line; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn ask(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").expect("it listens");
        self.line()
    }
}

impl Drop for Dialogue {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The application, and its address.
fn application() -> (Dialogue, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/echo.py");
    let mut echo = Dialogue::start(python(Path::new(".")).arg(script));
    let port = echo.line().replace("listening on ", "");
    (echo, format!("http://127.0.0.1:{port}"))
}

/// A client that has connected, or has been refused, which is the first line that it says.
fn client(site: &Site, scheme: &str) -> Dialogue {
    let mut command = python(&site.gateway.path("."));
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/talk.py"));
    if scheme == "wss" {
        command.args([&site.url("https", "/live").replace("https", "wss"), &site.secure.port().to_string(), "ca.pem"]);
    } else {
        command.args([&site.url("http", "/live").replace("http", "ws"), &site.plain.port().to_string()]);
    }
    Dialogue::start(&mut command)
}

fn open(site: &Site, scheme: &str) -> Dialogue {
    let mut client = client(site, scheme);
    assert_eq!(client.line(), "open", "{scheme}");
    client
}

#[test]
fn messages_pings_and_the_end_pass_both_ways() {
    let (mut echo, url) = application();
    let site = Site::before(&url, "");
    for scheme in ["ws", "wss"] {
        let mut client = open(&site, scheme);
        for order in ["text 1", "text 126", "text 70000", "text 1048576", "binary 1048576", "fragments 300"] {
            assert_eq!(client.ask(order), "same", "{scheme} {order}");
            assert_eq!(client.ask("ping"), "pong", "{scheme}");
        }
        assert_eq!(client.ask("close 4001 bye"), "closed 4001", "{scheme}");
        assert_eq!(echo.line(), "closed 4001 bye", "{scheme}");
        let mut client = open(&site, scheme);
        assert_eq!(client.ask("leave"), "ended 4002 enough", "{scheme}");
        assert_eq!(echo.line(), "closed 4002 enough", "{scheme}");
        // A client that is gone without a word is gone for the application too.
        drop(open(&site, scheme));
        assert_eq!(echo.line(), "closed 1006", "{scheme}");
    }
}

#[test]
fn a_limit_refuses_the_handshake() {
    let (_echo, url) = application();
    let site = Site::before(&url, "limits: [{name: two, key: client_ip, rate: 2/hour}]");
    let mut open = [open(&site, "ws"), open(&site, "wss")];
    assert_eq!(client(&site, "ws").line(), "refused 429");
    assert_eq!(client(&site, "wss").line(), "refused 429");
    for client in &mut open {
        assert_eq!(client.ask("text 10"), "same");
    }
}

#[test]
fn a_connection_goes_on_over_a_reload_and_until_draining_ends() {
    const DRAIN: Duration = Duration::from_secs(2);
    let (_echo, url) = application();
    let mut site = Site::before(&url, "server: {timeouts: {drain: 2s}}");
    let mut clients = [open(&site, "ws"), open(&site, "wss")];
    let listen = "listen:\n  - 127.0.0.1:0\n  - address: 127.0.0.1:0\n    \
                  tls: {certificates: [{cert: site.pem, key: site.key}]}\n";
    let server = "server: {timeouts: {drain: 2s}}\nlimits: [{key: client_ip, rate: 9/hour}]";
    site.gateway.reload(format!("{listen}upstream: {url}\n{server}"));
    assert_eq!(site.gateway.failed_reloads(), 0);
    for client in &mut clients {
        assert_eq!([client.ask("text 5"), client.ask("ping")], ["same", "pong"]);
    }
    let waited = Stopwatch::start();
    site.gateway.signal("TERM");
    eventually("no new connection is taken", || TcpStream::connect(site.plain).is_err());
    for client in &mut clients {
        let mut said = client.ask("text 5");
        while said == "same" {
            said = client.ask("text 5");
        }
        assert_eq!(said, "ended");
        assert!(waited.elapsed() >= DRAIN, "{:?}", waited.elapsed());
    }
    assert!(site.gateway.ended().code().is_some());
}
