//! The listener that proxies ask at.

use std::time::Duration;

use crate::question::{ONE_LOGIN, ask, ask_at, asked};
use crate::support::{Gateway, RawClient, Request, eventually};

const PATIENCE: Duration = Duration::from_secs(10);

fn from(networks: &str) -> String {
    format!(
        "listen: {{address: 127.0.0.1:0, serves: decisions, from: {networks}}}\n{ONE_LOGIN}\nadmin: {{address: 127.0.0.1:0}}"
    )
}

fn rejected(gateway: &Gateway) -> u64 {
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    let count = metrics.lines().find_map(|line| line.strip_prefix("portcullis_rejected_connections_total "));
    count.expect("the metric").parse().expect("a number")
}

fn is_answered(gateway: &Gateway, source: &str) -> bool {
    let question = ask(gateway, "GET", "/").from(source);
    question.connect().send(question.bytes()).try_response("GET").is_some()
}

#[test]
fn only_peers_in_from_are_answered_and_others_are_counted() {
    let gateway = Gateway::start(from("[127.0.0.2, 127.1.0.0/16]"));
    assert!(is_answered(&gateway, "127.0.0.2") && is_answered(&gateway, "127.1.2.3"));
    assert_eq!(rejected(&gateway), 0);
    assert!(!is_answered(&gateway, "127.0.0.1") && !is_answered(&gateway, "127.2.0.1"));
    assert!(!is_answered(&gateway, "127.0.0.1"));
    assert_eq!(rejected(&gateway), 3);
    // One line for each network of peers.
    let lines = || gateway.log_messages().iter().filter(|line| line.contains("is not in `from`")).count();
    eventually("both networks are named", || lines() == 2);
}

#[test]
fn a_reload_changes_who_may_ask() {
    let gateway = Gateway::start(from("127.0.0.2"));
    assert!(!is_answered(&gateway, "127.0.0.3"));
    let mut connection = RawClient::connect_from([127, 0, 0, 2].into(), gateway.address());
    assert_eq!(ask(&gateway, "GET", "/").send_on(&mut connection).status, 200);
    gateway.reload(from("[127.0.0.3]"));
    assert!(connection.ends_within(PATIENCE), "its peer may ask no longer");
    assert!(is_answered(&gateway, "127.0.0.3") && !is_answered(&gateway, "127.0.0.2"));
    assert!(gateway.log_messages().iter().any(|line| line.contains("other `from` on 127.0.0.1:")));
    gateway.reload(format!("{ONE_LOGIN}\nadmin: {{address: 127.0.0.1:0}}"));
    assert_eq!(gateway.get("/").from("127.0.0.9").status(), 502);
    assert!(gateway.log_messages().iter().any(|line| line.contains("requests are served on 127.0.0.1:")));
    gateway.reload(from("127.0.0.2"));
    assert!(is_answered(&gateway, "127.0.0.2") && !is_answered(&gateway, "127.0.0.9"));
    assert!(gateway.log_messages().iter().any(|line| line.contains("decisions are served on 127.0.0.1:")));
}

#[test]
fn a_gateway_that_only_answers_questions_needs_no_upstream() {
    let config =
        |listen: &str| format!("listen: {{address: 127.0.0.1:0{listen}}}\nlimits: [{{key: client_ip, rate: 1/hour}}]");
    let gateway = Gateway::start(format!("{}\nupstream: http://127.0.0.1:9", config("")));
    let mut connection = gateway.connect();
    assert_eq!(gateway.get("/").send_on(&mut connection).status, 502);
    gateway.reload(config(", serves: decisions"));
    assert_eq!(ask(&gateway, "GET", "/").status(), 200);
    assert_eq!(ask(&gateway, "GET", "/").status(), 429);
    assert!(connection.ends_within(PATIENCE), "its client has nothing to ask");
}

#[test]
fn a_connection_without_a_proxy_header_is_counted_as_rejected() {
    let gateway = Gateway::start(format!(
        "listen: {{address: 127.0.0.1:0, proxy_protocol: true}}\nclient_ip: {{trusted_proxies: 127.0.0.2/32}}\n{ONE_LOGIN}\nadmin: {{address: 127.0.0.1:0}}"
    ));
    let without = gateway.get("/");
    assert!(without.connect().send(without.bytes()).try_response("GET").is_none());
    assert!(
        RawClient::connect_from([127, 0, 0, 2].into(), gateway.address()).send(without.bytes()).ends_within(PATIENCE)
    );
    eventually("both are counted", || rejected(&gateway) == 2);
}

#[test]
fn questions_follow_each_other_on_one_connection() {
    let gateway = asked(ONE_LOGIN);
    let mut connection = gateway.connect();
    let statuses: Vec<_> = (0..3).map(|_| ask(&gateway, "POST", "/login").send_on(&mut connection).status).collect();
    assert_eq!(statuses, [200, 429, 429]);
    // Several at once, in order.
    let (login, page) = (ask(&gateway, "POST", "/login").bytes(), ask(&gateway, "GET", "/page").bytes());
    connection.send([&login[..], &page, &login].concat());
    assert_eq!([(); 3].map(|()| connection.response().status), [429, 200, 429]);
    // A question that describes nothing is a whole one.
    assert_eq!(Request::new(gateway.address(), "GET", "/auth").send_on(&mut connection).status, 400);
    assert_eq!(ask(&gateway, "GET", "/page").send_on(&mut connection).status, 200);
}

#[test]
fn the_framing_of_a_question_is_checked_like_that_of_any_request() {
    let gateway = asked(ONE_LOGIN);
    let question = |lines: &str| {
        let mut connection = gateway.connect();
        let described =
            "X-Forwarded-Method: GET\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nX-Forwarded-Uri: /\r\n";
        connection.send(format!("POST /auth HTTP/1.1\r\n{described}{lines}\r\n"));
        connection.response().status
    };
    assert_eq!(question("Host: p\r\n"), 200);
    assert_eq!(question(""), 400);
    assert_eq!(question("Host: p\r\nHost: q\r\n"), 400);
    assert_eq!(question("Host: p\r\nTransfer-Encoding: gzip, chunked\r\n"), 400);
    assert_eq!(question("Host: p\r\nContent-Length: 1\r\nContent-Length: 2\r\n"), 400);
    let mut old = gateway.connect();
    old.send("GET /auth/nginx HTTP/1.0\r\nHost: a\r\nConnection: close\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\n\r\n");
    assert_eq!(old.response().status, 200);
}

#[test]
fn a_bound_on_connections_of_a_client_is_not_one_for_a_proxy_that_asks() {
    let gateway = asked(&format!("{ONE_LOGIN}\nserver: {{max_connections_per_client: 1}}"));
    let mut open: Vec<_> = (0..3).map(|_| gateway.connect()).collect();
    for connection in &mut open {
        assert_eq!(ask_at(gateway.address(), "GET", "/").send_on(connection).status, 200);
    }
}
