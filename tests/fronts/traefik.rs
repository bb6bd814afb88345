//! Questions as Traefik asks them, to the byte: its own binary is in no package of Debian.

use crate::question::asked;
use crate::support::{Gateway, Response, dropped_headers};

const RULES: &str = "\
upstream: http://127.0.0.1:9
routes:
  - {name: login, match: POST /login, limits: [{name: name, key: param.username, rate: 1/minute}]}
  - {name: page, match: /page/*, limits: [{name: page, key: client_ip, rate: 1/minute}]}";

/// The headers of Traefik, among those of the client.
fn headers(method: &str, uri: &str) -> String {
    format!(
        "Host: 127.0.0.1:9191\r\nUser-Agent: Mozilla/5.0\r\nAccept: text/html\r\nAccept-Encoding: gzip\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Host: app.example\r\n\
         X-Forwarded-Method: {method}\r\nX-Forwarded-Port: 443\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Server: edge\r\n\
         X-Forwarded-Uri: {uri}\r\nX-Real-Ip: 203.0.113.9\r\n"
    )
}

fn answer(gateway: &Gateway, head: &str, body: &str) -> Response {
    let mut connection = gateway.connect();
    connection.send(format!("GET /auth HTTP/1.1\r\n{head}\r\n{body}"));
    connection.response()
}

#[test]
fn a_question_without_a_body() {
    let gateway = asked(RULES);
    assert_eq!(answer(&gateway, &headers("GET", "/page/1?a=b%20c"), "").status, 200);
    let denied = answer(&gateway, &headers("GET", "/page/%31?a=b"), "");
    assert_eq!(denied.status, 429);
    assert!(denied.text().contains("<title>Too many attempts</title>") && denied.header("retry-after").is_some());
    let line = gateway.log_line("/page/1");
    assert_eq!((&line["client"], &line["scheme"]), (&"203.0.113.9".into(), &"https".into()));
    assert_eq!(line["user_agent"], "Mozilla/5.0");
}

#[test]
fn a_body_with_a_length() {
    let gateway = asked(RULES);
    let login = |body: &str| {
        let head = format!("{}Content-Length: {}\r\n", headers("POST", "/login"), body.len());
        answer(&gateway, &head, body).status
    };
    assert_eq!((login("username=alice"), login("username=Alice&b=c"), login("username=bob")), (200, 429, 200));
}

#[test]
fn a_body_in_chunks() {
    let gateway = asked(RULES);
    let login = |body: &str| {
        let head = format!("{}Transfer-Encoding: chunked\r\n", headers("POST", "/login"));
        answer(&gateway, &head, &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())).status
    };
    assert_eq!((login("username=alice"), login("username=Alice&b=c"), login("username=bob")), (200, 429, 200));
}

#[test]
fn a_second_description_by_the_client_is_refused() {
    let gateway = asked(RULES);
    let head = format!("{}X-Original-Uri: /other\r\n", headers("GET", "/page/1"));
    assert_eq!(answer(&gateway, &head, "").status, 400);
}

/// What Traefik removes from requests of clients, and writes itself.
const OF_TRAEFIK: [&str; 6] =
    ["x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-forwarded-server", "x-real-ip"];

#[test]
fn the_ready_file_removes_what_the_gateway_does_not_pass_on() {
    let file = include_str!("../../config/with/traefik.yaml").to_lowercase();
    for name in dropped_headers() {
        // The answer to the question replaces the X-Request-ID.
        let is_replaced = OF_TRAEFIK.contains(&name) || name == "x-request-id";
        assert!(is_replaced || file.contains(&format!("\n          {name}: \"\"\n")), "{name} is not removed");
    }
}
