//! A replay of the gateway's own log decides as the gateway did.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{fs, thread};

use portcullis::config;
use portcullis::gateway::stages::Decider;
use portcullis::replay::{FieldNames, LogFiles, LogFormat, Simulation};
use serde_json::Value;

use crate::support::{Answer, Gateway, Origin, eventually};

const RULES: &str = "
lists:
  office: {addresses: [127.0.0.9]}
  abusers: {addresses: [127.0.0.8]}
access: {allow: [office], deny: [abusers]}
limits:
  - {name: per-client, key: client_ip, rate: 25/minute}
  - {name: trial, key: client_ip, rate: 2/minute, shadow: true}
routes:
  - name: login
    match: /login/*
    outcome: {success: {status: 302}}
    limits:
      - {name: pace, key: client_ip, rate: 9/minute, count: attempts}
      - {name: guessing, key: client_ip, rate: 3/minute, count: failures, reset_on: success, then: {ban: [20s, 1m]}}
  - name: api
    match: {host: api.example.com, path: '/v1/{user}/*'}
    limits:
      - {name: by-user, key: path.user, rate: 4/minute, algorithm: token-bucket, burst: 2}
      - {name: scanning, key: client_ip, distinct: path.user, rate: 3/minute, then: {tarpit: 10ms}}
  - name: slow
    match: /slow/*
    limits: [{name: slowing, key: [], rate: 2/minute, then: {delay: 20ms}}]
  - {name: private, match: /private/*, only: [office]}
  - name: sign-in
    match: POST /sign-in/*
    outcome: {success: {status: 302}}
    known_clients: {of: [host, param.user]}
    limits:
      - {name: account, key: param.user, rate: 3/minute, count: failures, unless: [known_client]}
      - {name: address, key: [client_ip, param.user], rate: 6/minute, count: failures, reset_on: success}
      - {name: stuffing, key: client_ip, distinct: param.user, rate: 2/minute, unless: [known_client]}
";

/// The application: a login succeeds where its path says so.
fn answer(target: &str) -> Answer {
    match target {
        target if target.contains("right") => Answer::new(302, &[("Location", "/")], ""),
        target if target.contains("wrong") => Answer::new(401, &[], ""),
        _ => Answer::ok("hello"),
    }
}

/// Sends requests of all kinds, each with a path of its own, and returns how many.
fn traffic(gateway: &Gateway) -> usize {
    let mut count = 0;
    let mut send = |client: &str, host: &str, path: &str| {
        count += 1;
        gateway.get(&format!("{path}{count}")).from(client).host(host).send();
        // Longer than the log's precision, so that its order is that of the requests.
        thread::sleep(Duration::from_millis(3));
    };
    for _ in 0..2 {
        for client in ["127.0.0.1", "127.0.0.2", "127.0.0.8", "127.0.0.9"] {
            send(client, "example.com", "/");
            send(client, "example.com", "/login/wrong");
            send(client, "example.com", "/login/wrong");
            send(client, "example.com", if client == "127.0.0.1" { "/login/right" } else { "/login/wrong" });
            send(client, "example.com", "//LOGIN/wrong");
            send(client, "api.example.com:80", &format!("/v1/u{}/", client.len()));
            send(client, "api.example.com", "/v1/a/");
            send(client, "API.example.com", "/v1/b/");
            send(client, "api.example.com", "/v1/c/");
            send(client, "api.example.com", "/v1/d/");
            send(client, "example.com", "/slow/");
            send(client, "example.com", "/private/");
        }
    }
    // No line of the log has these names, only hashes of keys with them.
    let mut sign_in = |client: &str, user: &str, path: &str| {
        count += 1;
        let request = gateway.post(&format!("/sign-in/{path}{count}")).from(client).host("example.com");
        request.form(&format!("user={user}&password=x")).send();
        thread::sleep(Duration::from_millis(3));
    };
    sign_in("127.0.0.11", "alice", "right");
    for guess in 0..5 {
        sign_in("127.0.0.12", "alice", "wrong");
        sign_in("127.0.0.11", "Alice", "wrong");
        sign_in("127.0.0.12", "bob", "wrong");
        sign_in(&format!("127.0.1.{guess}"), "bob", "wrong");
        sign_in("127.0.0.13", ["carol", "dave", "erin"][guess % 3], "right");
    }
    count
}

#[track_caller]
fn check(format: &str) {
    let origin = Origin::answering(|received| answer(&received.target));
    let gateway =
        Gateway::start(format!("upstream: {}\nlog: {{format: {format}, query: true}}\n{RULES}", origin.url()));
    let sent = traffic(&gateway);
    eventually("all requests are logged", || gateway.stdout().len() >= sent);
    let log = gateway.path("access.log");
    let lines = gateway.stdout();
    fs::write(&log, lines.join("\n") + "\n").expect("a log");

    let settings = config::load(&gateway.path("portcullis.yaml")).expect("it runs with it");
    let mut logs =
        LogFiles::open(&[log.display().to_string()], LogFormat::Auto, &FieldNames::default()).expect("our own log");
    let (mut simulation, left_out) = Simulation::new(settings, &logs.contents());
    assert_eq!(left_out, []);
    let mut simulated = BTreeMap::new();
    while let Some(request) = logs.next_request().expect("our own lines") {
        let decision = simulation.decide(&request).expect("well-formed");
        let limit = match &decision.record.decider {
            Decider::Limit(limit) => simulation.policy().limit(*limit).name.to_string(),
            Decider::List(list) => list.to_string(),
            Decider::Nothing => String::new(),
        };
        simulated.insert(request.path_and_query().to_owned(), (decision.record.label.as_str().to_owned(), limit));
    }
    let logged: BTreeMap<_, _> = lines.iter().map(|line| logged(line)).collect();
    let different = logged.iter().filter(|(path, decision)| simulated.get(*path) != Some(decision));
    let different: Vec<_> = different.map(|(path, decision)| (path, decision, simulated.get(path))).collect();
    assert!(different.is_empty() && simulated.len() == logged.len(), "{different:#?}");
    for kind in ["allowed", "denied", "banned", "listed", "delayed", "tarpitted"] {
        assert!(logged.values().any(|(decision, _)| decision == kind), "nothing was {kind}");
    }
}

/// The path, the decision and the limit or list of a line.
fn logged(line: &str) -> (String, (String, String)) {
    let line: Value = serde_json::from_str(line).expect("JSON");
    let text = |names: &[&str]| names.iter().find_map(|name| line[*name].as_str()).unwrap_or_default().to_owned();
    (
        text(&["path", "url.path"]),
        (text(&["decision", "event.action"]), text(&["limit", "rule.name", "list", "portcullis.list"])),
    )
}

#[test]
fn every_request_of_a_real_run_is_decided_as_it_was_logged() {
    check("json");
    check("ecs");
}
