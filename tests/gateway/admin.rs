//! The health checks and metrics of the admin listener.

use serde_json::{Value, json};

use crate::support::{Gateway, Origin, RawClient, Request};

fn with_admin(config: &str) -> Gateway {
    Gateway::start(format!("admin: {{address: 127.0.0.1:0}}\n{config}"))
}

fn admin(gateway: &Gateway, path: &str) -> Request {
    Request::new(gateway.admin(), "GET", path)
}

#[test]
fn a_head_that_is_no_request_is_answered_with_a_problem_document() {
    let gateway = with_admin("upstream: http://127.0.0.1:9");
    let check = |head: &str, status: u16| {
        let mut client = RawClient::connect(gateway.admin());
        let answer = client.send(head).response();
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, Some("application/problem+json")),
            "{head}"
        );
        assert_eq!((&answer.json()["status"], answer.header("cache-control")), (&json!(status), Some("no-store")));
        assert!(answer.json()["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{}", answer.text());
        assert_eq!(client.rest(), b"", "the connection ends");
    };
    check("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400);
    check("nonsense\r\n\r\n", 400);
    check("GET / HTTP/3.7\r\nHost: a\r\n\r\n", 505);
    check("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400);
    check(&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(20_000)), 431);
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let gateway = with_admin("upstream: http://127.0.0.1:9");
    let slow = |(path, begin): (&str, &str)| {
        let mut client = RawClient::connect(gateway.admin());
        client.send(format!("POST {path} HTTP/1.1\r\nHost: {}\r\n{begin}", gateway.admin()));
        client
    };
    // One operation takes a body, the other one does not.
    let begun = [
        ("/api/v1/bans", "Content-Length: 70\r\n\r\n{"),
        ("/api/v1/bans", "Content-Length: 70\r\n\r\n"),
        ("/api/v1/reload", "Transfer-Encoding: chunked\r\n\r\n"),
    ];
    for mut client in begun.map(slow) {
        let answer = client.response();
        assert_eq!((answer.status, answer.header("content-type")), (408, Some("application/problem+json")));
        assert_eq!(client.rest(), b"", "the connection ends");
    }
}

#[test]
fn metrics_count_what_happened() {
    let origin = Origin::start();
    let gateway = with_admin(&format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}]}}\nroutes:\n  - name: login\n    match: /login\n    limits:\n      - {{name: login-pace, key: client_ip, rate: 2/hour}}",
        origin.url()
    ));
    for _ in 0..5 {
        gateway.get("/login").status();
    }
    let answer = admin(&gateway, "/metrics").send();
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let metrics = answer.text();
    let value = |name: &str, labels: &[&str]| {
        let line = metrics
            .lines()
            .find(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)))
            .unwrap_or_else(|| panic!("no {name} {labels:?} in\n{metrics}"));
        line.rsplit(' ').next().expect("a value").parse::<f64>().expect("a number")
    };
    #[expect(clippy::float_cmp, reason = "counters are whole numbers")]
    let check =
        |name: &str, labels: &[&str], expected: f64| assert_eq!(value(name, labels), expected, "{name}\n{metrics}");
    check("portcullis_requests_total", &["route=\"login\"", "decision=\"allowed\"", "status=\"2xx\""], 2.0);
    check("portcullis_requests_total", &["route=\"login\"", "decision=\"denied\"", "status=\"4xx\""], 3.0);
    check("portcullis_limit_decisions_total", &["limit=\"login-pace\"", "decision=\"denied\""], 3.0);
    check("portcullis_limit_decisions_total", &["limit=\"login-pace\"", "decision=\"allowed\""], 2.0);
    check("portcullis_upstream_requests_total", &["upstream=\"app\""], 2.0);
    check("portcullis_request_duration_seconds_count", &["route=\"login\""], 5.0);
    check("portcullis_store_keys", &["kind=\"memory\""], 1.0);
    check("portcullis_store_up", &["kind=\"memory\""], 1.0);
    check("portcullis_config_last_reload_success", &[], 1.0);
    check("portcullis_build_info", &["version="], 1.0);
    value("portcullis_decision_duration_seconds", &[]);
    value("portcullis_connections", &[]);
}

#[test]
fn routes_beyond_the_bound_have_no_series_of_their_own() {
    let origin = Origin::start();
    let config = |metrics: &str| {
        format!(
            "admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{metrics}\nroutes:\n  - {{name: login, match: /login}}\n  \
             - {{name: search, match: /search}}\n  - {{name: feed, match: /feed}}\n",
            origin.url()
        )
    };
    let gateway = Gateway::start(config("metrics: {routes: 1}"));
    let metrics = || {
        for path in ["/login", "/search", "/feed", "/on-no-route"] {
            assert_eq!(gateway.get(path).status(), 200);
        }
        admin(&gateway, "/metrics").send().text()
    };
    let has = |text: &str, route: &str, count: u32| {
        let [requests, durations] = [
            format!("portcullis_requests_total{{route=\"{route}\",decision=\"allowed\",status=\"2xx\"}} {count}\n"),
            format!("portcullis_request_duration_seconds_count{{route=\"{route}\"}} {count}\n"),
        ];
        assert!(text.contains(&requests) && text.contains(&durations), "{requests}{durations}{text}");
    };
    let text = metrics();
    has(&text, "login", 1);
    has(&text, "other", 2);
    has(&text, "none", 1);
    assert!(!text.contains("search") && !text.contains("feed"), "{text}");

    gateway.reload(config("metrics: {routes: off}"));
    let text = metrics();
    has(&text, "other", 5);
    has(&text, "none", 2);
    assert!(!text.contains("route=\"login\"") && !text.contains("search"), "{text}");
    let history = gateway.admin_request("GET", "/api/v1/history").send().json();
    let counted = history["routes"]["search"]["allowed"].as_array().expect("steps").iter().filter_map(Value::as_u64);
    assert_eq!(counted.sum::<u64>(), 2, "{history}");

    // Each route goes on where it was.
    gateway.reload(config(""));
    let text = metrics();
    assert!(
        text.contains("portcullis_requests_total{route=\"search\",decision=\"allowed\",status=\"2xx\"} 3\n"),
        "{text}"
    );
}

#[test]
fn what_clients_send_is_no_label() {
    let origin = Origin::start();
    let gateway = with_admin(&format!("upstream: {}", origin.url()));
    let before = admin(&gateway, "/metrics").send().text().lines().count();
    for number in 0..50 {
        gateway.request("GET", &format!("/path-{number}")).host(&format!("host-{number}")).status();
    }
    let metrics = admin(&gateway, "/metrics").send().text();
    assert!(!metrics.contains("path-") && !metrics.contains("host-"), "{metrics}");
    assert!(metrics.lines().count() < before + 40, "{metrics}");
}
