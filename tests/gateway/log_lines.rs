//! What is written about each request, and what never is.

use crate::support::Gateway;
use crate::support::Origin;

fn logged(origin: &Origin, more: &str) -> Gateway {
    Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}]}}\nroutes:\n  - name: login\n    match: /login\n    limits:\n      - {{name: login-pace, key: client_ip, rate: 1/hour}}\n{more}",
        origin.url()
    ))
}

#[test]
fn a_request_is_a_line_of_json_with_its_story() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    assert_eq!(gateway.post("/login").host("App.example").form("user=alice").status(), 200);
    let line = gateway.log_line("/login");
    for key in [
        "time",
        "request_id",
        "client",
        "peer",
        "method",
        "host",
        "path",
        "route",
        "decision",
        "limit",
        "shadow",
        "status",
        "upstream",
        "server",
        "duration_ms",
        "bytes_in",
        "bytes_out",
    ] {
        assert!(line.get(key).is_some(), "{key} in {line}");
    }
    assert_eq!(line["client"], "127.0.0.1");
    assert_eq!(line["peer"], "127.0.0.1");
    assert_eq!(line["method"], "POST");
    assert_eq!(line["route"], "login");
    assert_eq!(line["decision"], "allowed");
    assert_eq!(line["limit"], serde_json::Value::Null);
    assert_eq!(line["status"], 200);
    assert_eq!(line["upstream"], "app");
    assert_eq!(line["server"], origin.address().to_string());
    assert_eq!((line["bytes_in"].as_u64(), line["bytes_out"].as_u64()), (Some(10), Some(6)));
    assert!(line["duration_ms"].as_f64().is_some_and(|spent| spent > 0.0), "{line}");
    assert_eq!(Some(line["request_id"].as_str().expect("an id")), origin.last().header("x-request-id"));
}

#[test]
fn a_denial_names_the_limit_that_decided() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    assert_eq!(gateway.get("/login").status(), 200);
    assert_eq!(gateway.get("/login/").status(), 429);
    let line = gateway.log_line("/login/");
    assert_eq!((line["decision"].as_str(), line["limit"].as_str()), (Some("denied"), Some("login-pace")));
    assert_eq!(line["status"], 429);
    assert_eq!(line["upstream"], serde_json::Value::Null);
}

#[test]
fn a_listed_client_is_logged_as_listed() {
    let origin = Origin::start();
    let gateway = logged(&origin, "lists:\n  bad: {addresses: [127.0.0.2]}\naccess: {deny: [bad]}");
    assert_eq!(gateway.get("/x").from("127.0.0.2").status(), 403);
    let line = gateway.log_line("/x");
    assert_eq!((line["decision"].as_str(), line["limit"].as_str()), (Some("listed"), Some("bad")));
}

#[test]
fn no_secret_of_a_request_is_written() {
    let origin = Origin::start();
    let gateway = logged(&origin, "limits:\n  - {name: user, key: [param.user, bearer, cookie.s], rate: 1/hour}");
    let request = gateway
        .post("/secret?token=geheim1")
        .header("Authorization", "Bearer geheim2")
        .header("Cookie", "s=geheim3")
        .form("user=geheim4&password=geheim5");
    assert_eq!(request.status(), 200);
    assert_eq!(request.status(), 429);
    gateway.log_line("/secret");
    let everything = format!("{}\n{}", gateway.stdout().join("\n"), gateway.stderr().join("\n"));
    assert!(!everything.contains("geheim"), "{everything}");
}

#[test]
fn what_a_client_sends_cannot_forge_a_line() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    assert_eq!(gateway.get("/a\"},{\"b").status(), 200);
    assert_eq!(gateway.get("/after").status(), 200);
    gateway.log_line("/after");
    for line in gateway.stdout() {
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok_and(|line| line["time"].is_string()), "{line}");
    }
    gateway.log_line("/a\"},{\"b");
}

#[test]
fn requests_are_logged_only_where_that_is_wanted() {
    let origin = Origin::start();
    let gateway = logged(&origin, "log: {format: json, requests: false}");
    assert_eq!(gateway.get("/x").status(), 200);
    assert_eq!(gateway.get("/login").status(), 200);
    assert!(gateway.stdout().is_empty(), "{:?}", gateway.stdout());
}

#[test]
fn people_get_lines_they_can_read() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    gateway.rewrite(format!("log: {{format: human}}\nupstream: {}", origin.url()));
    crate::support::eventually("a line for people", || {
        gateway.get("/readable").status();
        gateway
            .stdout()
            .iter()
            .any(|line| line.contains("/readable") && !line.starts_with('{') && line.contains(" 200 "))
    });
}
