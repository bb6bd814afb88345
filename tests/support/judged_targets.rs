//! Whether a proxy asks about the target that it forwards.

use std::collections::HashMap;
use std::thread;

use serde_json::Value;

use super::clock::eventually;
use super::gateway::Gateway;
use super::origin::{Origin, Received};
use super::request::Request;
use super::spellings::spellings;

/// The route of the gateway for `/login`, whatever the method.
const LOGIN_PAGE: &str = "login-page";

/// Sends GET requests for `/login`, however it is spelled, through a proxy that asks this gateway and forwards to this
/// application; `request` makes one. Requires that what is judged is what is forwarded, letter by letter; or the proxy cleans
/// the path, and what is judged is a login if what is forwarded is one. The gateway logs queries and has the route
/// `login-page`.
#[track_caller]
pub fn check_judged_targets(origin: &Origin, gateway: &Gateway, request: impl Fn(&str) -> Request + Sync) {
    let targets: Vec<String> = spellings("/login").into_iter().collect();
    let numbered: Vec<(usize, &String)> = targets.iter().enumerate().collect();
    let request = &request;
    thread::scope(|scope| {
        for share in numbered.chunks(targets.len().div_ceil(4)) {
            scope.spawn(move || {
                for (number, target) in share {
                    request(target).from(&client(*number)).header("X-Number", &number.to_string()).send();
                }
            });
        }
    });
    let forwarded = origin.requests();
    let forwarded: Vec<_> = forwarded.iter().filter_map(|received| Some((number(received)?, received))).collect();
    // Proxies refuse some themselves.
    assert!(forwarded.len() >= AT_LEAST, "only {} of {} are forwarded", forwarded.len(), targets.len());
    let judged = lines(gateway, forwarded.iter().map(|(number, _)| client(*number)));
    let cleaned = forwarded.iter().filter(|(number, received)| target(&judged[&client(*number)]) != received.target);
    for (number, received) in cleaned.clone() {
        let question = Request::new(gateway.address(), "GET", "/auth/nginx");
        let question = question.header("X-Original-Method", "GET").header("X-Original-URI", &received.target);
        question.header("X-Forwarded-For", &client_behind(*number)).send();
    }
    let read = lines(gateway, cleaned.clone().map(|(number, _)| client_behind(*number)));
    for (number, received) in cleaned {
        let [judged, read] = [&judged[&client(*number)], &read[&client_behind(*number)]];
        let is_login = |line: &Value| line["route"] == LOGIN_PAGE;
        assert!(is_login(judged) || !is_login(read), "{judged} is forwarded as {}", received.target);
    }
}

const AT_LEAST: usize = 500;

/// The line of the log about the one request of each of these clients.
#[track_caller]
fn lines(gateway: &Gateway, clients: impl Iterator<Item = String>) -> HashMap<String, Value> {
    let clients: Vec<String> = clients.collect();
    let mut found = HashMap::new();
    eventually("all are logged", || {
        let lines = gateway.stdout();
        let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        found = lines.map(|line| (line["client"].as_str().unwrap_or_default().to_owned(), line)).collect();
        clients.iter().all(|client| found.contains_key(client))
    });
    found
}

fn target(line: &Value) -> String {
    let path = line["path"].as_str().unwrap_or_default();
    line["query"].as_str().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
}

/// The client that sends the request of that number.
fn client(number: usize) -> String {
    format!("127.20.{}.{}", number >> 8, number & 255)
}

/// The client of the question how the gateway reads what was forwarded for that request.
fn client_behind(number: usize) -> String {
    format!("127.21.{}.{}", number >> 8, number & 255)
}

fn number(received: &Received) -> Option<usize> {
    received.header("x-number")?.parse().ok()
}
