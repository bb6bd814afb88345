//! Whether anybody got in: sign-ins that follow failures, and who is told of.

use crate::support::{Answer, Gateway, Origin, RedisServer, eventually};

/// An application whose password is `right`.
fn application() -> Origin {
    Origin::answering(|received| {
        let is_right = received.text().contains("password=right");
        Answer::new(if is_right { 302 } else { 401 }, &[], "")
    })
}

/// No limit spares known clients, so that none asks the store whether a client is one.
fn start(origin: &Origin, store: &str) -> Gateway {
    Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{store}client_ip: {{trusted_proxies: [127.0.0.0/8]}}\nroutes:\n  - name: login\n    \
         match: POST /login\n    outcome: {{success: {{status: 302}}}}\n    \
         known_clients: {{of: param.username, remember: 5, for: 90d}}\n    \
         limits: [{{name: failures, key: param.username, rate: 1000/hour, count: failures}}]\n",
        origin.url()
    ))
}

#[track_caller]
fn sign_in(gateway: &Gateway, client: &str, password: &str) {
    let answer = gateway
        .post("/login")
        .header("X-Forwarded-For", client)
        .form(&format!("username=alice&password={password}"))
        .send();
    assert_eq!(answer.status, if password == "right" { 302 } else { 401 });
}

/// The clients that were told of, the newest first.
fn told(gateway: &Gateway) -> Vec<String> {
    let events = gateway.admin_request("GET", "/api/v1/events/recent").send().json();
    let events = events.as_array().expect("a list").iter();
    let sign_ins = events.filter(|event| event["event"] == "signed_in_after_failures");
    sign_ins.map(|event| event["client"].as_str().map(str::to_owned).unwrap_or_default()).collect()
}

#[track_caller]
fn strangers_are_told_of_and_known_clients_are_not(gateway: &Gateway) {
    sign_in(gateway, "198.51.100.7", "right");
    for _ in 0..6 {
        sign_in(gateway, "203.0.113.9", "wrong");
    }
    sign_in(gateway, "198.51.100.7", "right");
    sign_in(gateway, "203.0.113.9", "right");
    eventually("the stranger is told of", || !told(gateway).is_empty());
    // It is a known client by now, and was none when it got in.
    sign_in(gateway, "203.0.113.9", "right");
    sign_in(gateway, "203.0.113.10", "right");
    eventually("the next stranger is told of", || told(gateway).len() > 1);
    assert_eq!(told(gateway), ["203.0.113.10", "203.0.113.9"]);
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    assert!(metrics.contains("portcullis_signed_in_after_failures_total{route=\"login\"} 2\n"), "{metrics}");
}

#[test]
fn a_known_client_that_signs_in_after_failures_is_not_told_of_whatever_the_limits_ask() {
    let origin = application();
    strangers_are_told_of_and_known_clients_are_not(&start(&origin, ""));
}

#[test]
fn with_redis_neither() {
    let (origin, redis) = (application(), RedisServer::start());
    let store = format!("store: {{redis: {{url: \"{}\", timeout: 5s}}}}\n", redis.url());
    strangers_are_told_of_and_known_clients_are_not(&start(&origin, &store));
}

#[test]
fn the_outcomes_of_a_route_are_there_before_its_first_sign_in() {
    let origin = application();
    let gateway = start(&origin, "");
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    for series in [
        "portcullis_outcomes_total{route=\"login\",outcome=\"success\"} 0\n",
        "portcullis_outcomes_total{route=\"login\",outcome=\"failure\"} 0\n",
        "portcullis_outcomes_total{route=\"login\",outcome=\"neither\"} 0\n",
        "portcullis_signed_in_after_failures_total{route=\"login\"} 0\n",
    ] {
        assert!(metrics.contains(series), "no {series} in\n{metrics}");
    }
}
