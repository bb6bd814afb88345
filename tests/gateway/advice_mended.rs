//! Each kind of advice: what was seen, the line to write, in the log once, in the status, and gone when that line was written.

use serde_json::Value;

use crate::advice::{advice, kinds};
use crate::support::{Gateway, Origin, Request, eventually};

const ADMIN: &str = "admin: {address: 127.0.0.1:0}\n";

/// A mistake, and how it is mended.
struct Mistake {
    kind: &'static str,
    /// What the configuration says at first, and what it says when it is mended.
    written: [&'static str; 2],
    /// The request of this number.
    request: fn(&Gateway, usize) -> Request,
    /// Parts of the message, and of what to write.
    evidence: &'static [&'static str],
    line: &'static [&'static str],
}

/// The limit `login`, and the route of the same name.
fn with(origin: &Origin, written: &str) -> String {
    format!("{ADMIN}upstream: {}\n{written}\n", origin.url())
}

/// Sends a bit more than a thousand requests, on few connections.
fn send(gateway: &Gateway, request: fn(&Gateway, usize) -> Request) {
    std::thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                for number in (worker..1040).step_by(4) {
                    request(gateway, number).send();
                }
            });
        }
    });
}

fn a_client(request: Request, number: usize) -> Request {
    request.from(&format!("127.0.1.{}", 1 + number % 50))
}

#[track_caller]
fn check(mistake: &Mistake) {
    let Mistake { kind, written: [wrong, right], request, evidence, line } = mistake;
    let origin = Origin::start();
    let gateway = Gateway::start(with(&origin, wrong));
    send(&gateway, *request);
    eventually("it is named", || kinds(&gateway) == [*kind]);
    let found = advice(&gateway);
    for (field, parts) in [("message", evidence), ("help", line)] {
        let text = found[0][field].as_str().expect("a text");
        for part in *parts {
            assert!(text.contains(part), "no `{part}` in {field}: {text}");
        }
    }
    let status = gateway.admin_request("GET", "/api/v1/status").send().json();
    assert_eq!(status["advice"].as_array().map(Vec::len), Some(1), "{status}");

    gateway.reload(with(&origin, right));
    send(&gateway, *request);
    eventually("it is gone", || kinds(&gateway).is_empty());
    let logged: Vec<_> = gateway.stderr().into_iter().filter(|said| said.contains("\"advice\":")).collect();
    assert!(matches!(&logged[..], [said] if said.contains(&format!("\"advice\":\"{kind}\""))), "{logged:?}");
    let said: Value = serde_json::from_str(&logged[0]).expect("JSON");
    assert_eq!((&said["level"], &said["help"]), (&"WARN".into(), &found[0]["help"]));
}

#[test]
fn proxies_that_are_not_trusted() {
    // Two of them in turn, and a client now and then that tries it.
    let request = |gateway: &Gateway, number: usize| {
        let request = gateway.get("/").header("X-Forwarded-For", &format!("198.51.100.{}", number % 200));
        request.from(if number.is_multiple_of(40) { "127.0.3.3" } else { ["127.0.2.10", "127.0.2.11"][number % 2] })
    };
    check(&Mistake {
        kind: "untrusted_forwarding",
        written: ["", "client_ip: {trusted_proxies: [127.0.2.10, 127.0.2.11]}"],
        request,
        evidence: &[" of the last 10", "`x-forwarded-for`", "127.0.2.10", "127.0.2.11"],
        line: &["`client_ip: {trusted_proxies: [127.0.2.1", "127.0.2.10", "127.0.2.11"],
    });
}

#[test]
fn proxies_that_name_their_client_in_the_configured_header() {
    let request = |gateway: &Gateway, number: usize| {
        let client = format!("198.51.100.{}", number % 200);
        let request = gateway.get("/").header("X-Forwarded-For", &client).header("X-Custom-Ip", &client);
        request.from(["127.0.2.10", "127.0.2.11"][number % 2])
    };
    check(&Mistake {
        kind: "untrusted_forwarding",
        written: [
            "client_ip: {trusted_proxies: [10.0.0.1], header: x-custom-ip}",
            "client_ip: {trusted_proxies: [127.0.2.0/24], header: x-custom-ip}",
        ],
        request,
        evidence: &["`x-custom-ip`"],
        line: &["header: x-custom-ip}`"],
    });
}

#[test]
fn a_proxy_without_a_header() {
    let origin = Origin::start();
    let gateway = Gateway::start(with(&origin, ""));
    send(&gateway, |gateway, _| gateway.get("/").from("127.0.2.10"));
    eventually("it is named", || kinds(&gateway) == ["one_client"]);
    let found = advice(&gateway);
    assert!(found[0]["message"].as_str().is_some_and(|message| message.starts_with("127.0.2.10 sent 1")), "{found:?}");
    assert!(
        found[0]["help"].as_str().is_some_and(|help| help.contains("`client_ip: {trusted_proxies: [127.0.2.10]}`"))
    );
    // It is trusted now, and still names nobody.
    gateway.reload(with(&origin, "client_ip: {trusted_proxies: [127.0.2.10]}"));
    let help = || advice(&gateway)[0]["help"].as_str().unwrap_or_default().to_owned();
    eventually("it is to send a header", || help().contains("`client_ip: {header: x-real-ip}`"));
    send(&gateway, |gateway, number| {
        gateway.get("/").from("127.0.2.10").header("X-Forwarded-For", &format!("198.51.100.{}", number % 200))
    });
    eventually("it is gone", || kinds(&gateway).is_empty());
    assert_eq!(gateway.stderr().iter().filter(|said| said.contains("\"advice\":\"one_client\"")).count(), 1);
}

#[test]
fn a_login_field_of_another_name() {
    check(&Mistake {
        kind: "missing_field",
        written: [
            "routes: [{name: login, match: POST /login, limits: [{name: login, key: [client_ip, param.username], rate: 9999/hour}]}]",
            "routes: [{name: login, match: POST /login, limits: [{name: login, key: [client_ip, param.email], rate: 9999/hour}]}]",
        ],
        request: |gateway, number| a_client(gateway.post("/login").form(&format!("email=user{number}")), number),
        evidence: &[" of the last 10", "login", "param.username", "share one budget"],
        line: &["`key: [client_ip, param.NAME]`"],
    });
}

#[test]
fn an_outcome_that_no_answer_matches() {
    check(&Mistake {
        kind: "outcome_matches_neither",
        written: [
            "routes: [{name: login, match: POST /login, outcome: {success: {status: 302, header: {location: /account}}, failure: {status: 401}}}]",
            "routes: [{name: login, match: POST /login, outcome: {success: {status: 302, header: {location: /account}}, otherwise: failure}}]",
        ],
        request: |gateway, number| a_client(gateway.post("/login").form("username=a"), number),
        evidence: &[" answers on login match neither side"],
        line: &["`outcome: {success: {", "otherwise: failure}"],
    });
}

#[test]
fn a_limit_whose_route_no_request_takes() {
    check(&Mistake {
        kind: "limit_never_counted",
        written: [
            "routes: [{match: POST /signin, limits: [{name: login, key: client_ip, rate: 9999/hour}]}]",
            "routes: [{match: POST /login, limits: [{name: login, key: client_ip, rate: 9999/hour}]}]",
        ],
        request: |gateway, number| a_client(gateway.post("/login").form("username=a"), number),
        evidence: &["login (on POST /signin) has counted nothing while 10"],
        line: &["`match: POST /PATH`", "POST /signin", "portcullis explain"],
    });
}

#[test]
fn a_limit_that_skips_every_request() {
    check(&Mistake {
        kind: "limit_never_counted",
        written: [
            "routes: [{name: login, match: POST /login, limits: [{name: login, key: param.username, missing: skip, rate: 9999/hour}]}]",
            "routes: [{name: login, match: POST /login, limits: [{name: login, key: param.email, missing: skip, rate: 9999/hour}]}]",
        ],
        request: |gateway, number| a_client(gateway.post("/login").form(&format!("email=user{number}")), number),
        evidence: &["lack a part of its key (param.username)", "`missing: skip`"],
        line: &["`key: param.NAME`"],
    });
}

#[test]
fn a_pattern_that_no_name_matches() {
    check(&Mistake {
        kind: "pattern_matches_nothing",
        // Names are compared in lower case.
        written: [
            "routes: [{name: login, match: POST /login, limits: [{name: login, key: {param.username: {pattern: \"[A-Z]+[0-9]+\"}}, rate: 9999/hour}]}]",
            "routes: [{name: login, match: POST /login, limits: [{name: login, key: {param.username: {pattern: \"[a-z]+[0-9]+\"}}, rate: 9999/hour}]}]",
        ],
        request: |gateway, number| a_client(gateway.post("/login").form(&format!("username=user{number}")), number),
        evidence: &["none of the last 10", " names that met login matches its pattern `[A-Z]+[0-9]+`", "(other)"],
        line: &["`[a-z0-9._-]+`", "portcullis explain"],
    });
}
