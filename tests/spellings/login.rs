//! The check: sends a request to the server directly, then through the gateway.

use std::net::SocketAddr;
use std::thread;

use crate::spelling;
use crate::support::{Gateway, RawClient};

/// How logins begin what they say, and no other page.
const MARK: &str = "THE LOGIN of ";

/// A request that may be for the login.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Asked {
    /// The first line and some others.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn post(target: &str, line: &str) -> Self {
        Self { head: format!("POST {target} HTTP/1.1\r\n{line}Content-Length: 0\r\n"), body: String::new() }
    }

    /// What is answered to it.
    fn answer(&self, address: SocketAddr, line: &str) -> Option<String> {
        let Self { head, body } = self;
        let request = format!("{head}Host: app.example\r\nConnection: close\r\n{line}\r\n{body}");
        Some(RawClient::connect(address).send(request).try_response("POST")?.text())
    }
}

/// Requires that every spelling which a server reads as its login at `path` is charged to the route of `POST path`. So many
/// of the spellings reach it, at least: fewer mean that the server is not what it was.
#[track_caller]
pub(crate) fn check(server: SocketAddr, path: &str, at_least: usize) {
    check_route(server, &format!("POST {path}"), &Asked::post(path, ""), &spelling::of(path), at_least);
}

/// Requires that every one of these which the server takes for the login is charged to the route with this match, as the
/// plain request is.
#[track_caller]
pub(crate) fn check_route(server: SocketAddr, matching: &str, plain: &Asked, asked: &[Asked], at_least: usize) {
    let login = plain.answer(server, "").filter(|answer| answer.starts_with(MARK));
    assert!(login.is_some(), "{matching} is no login");
    let reaching = in_parallel(asked, |asked| (asked.answer(server, "") == login).then_some(asked));
    assert!(reaching.len() >= at_least, "only {} of {} reach {matching}", reaching.len(), asked.len());
    let gateway = Gateway::start(format!(
        "upstream: http://{server}
client_ip: {{trusted_proxies: [127.0.0.1]}}
routes:
  - name: login
    match: {matching}
    limits:
      - {{name: once, key: client_ip, rate: 1/day}}"
    ));
    let numbered: Vec<_> = reaching.iter().enumerate().collect();
    let slipped = in_parallel(&numbered, |(number, asked)| {
        // Each time another client, which has one request.
        let line = format!("X-Forwarded-For: 10.{}.{}.{}\r\n", number >> 16, (number >> 8) & 255, number & 255);
        let reaches = |asked: &Asked| asked.answer(gateway.address(), &line) == login;
        (reaches(asked) && reaches(plain)).then_some(*asked)
    });
    assert!(
        slipped.is_empty(),
        "{} of {} that reach {matching} are not charged to it: {slipped:#?}",
        slipped.len(),
        reaching.len()
    );
}

/// What `find` finds, asked by a few clients at a time.
fn in_parallel<'a, T: Sync, R: Send>(all: &'a [T], find: impl Fn(&'a T) -> Option<R> + Sync) -> Vec<R> {
    let find = &find;
    thread::scope(|scope| {
        let ask = |share: &'a [T]| scope.spawn(move || share.iter().filter_map(find).collect::<Vec<R>>());
        let clients: Vec<_> = all.chunks(all.len().div_ceil(CLIENTS).max(1)).map(ask).collect();
        clients.into_iter().flat_map(|client| client.join().expect("asking does not panic")).collect()
    })
}

/// So many at a time: no server waits for its client.
const CLIENTS: usize = 4;
