//! The description of the admin API, held against real answers.

use crate::support::{ApiDescription, Gateway, Origin, RedisServer, Request};

/// Every kind of limit and action.
const LIMITS: &str = r#"
notify: {ops: {webhook: "http://127.0.0.1:9/"}}
limits:
  - {name: pace, key: client_ip, rate: 5/hour, then: {ban: [1h, 2h], notify: [ops]}}
  - {name: bucket, key: header.x-user, rate: 9/hour, algorithm: token-bucket, burst: 20, then: {delay: 1s}}
  - {name: buckets, key: [], rate: 900/hour, algorithm: bucketed-window, buckets: 6, then: {tarpit: 1s}, shadow: true}
  - {name: flight, key: client_ip, concurrent: 9, then: {deny: {status: 503}}}
  - {name: guessing, key: client_ip, distinct: param.username, rate: 9/hour, then: {challenge: pow}}
"#;

fn with_a_store(store: &str) -> (Origin, Gateway) {
    let origin = Origin::start();
    let config = format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{store}{LIMITS}", origin.url());
    let gateway = Gateway::start(config);
    (origin, gateway)
}

/// Asks, and checks the answer against the description.
#[track_caller]
fn check(gateway: &Gateway, description: &ApiDescription, method: &str, path: &str, target: &str, status: u16) {
    let response = request(gateway, method, target).send();
    assert_eq!(response.status, status, "{method} {target}: {}", response.text());
    description.check(method, path, &response);
}

fn request(gateway: &Gateway, method: &str, target: &str) -> Request {
    Request::new(gateway.admin(), method, target).host(&gateway.admin().to_string())
}

#[test]
fn every_answer_is_as_it_is_described() {
    let redis = RedisServer::start();
    for store in [String::new(), format!("store: {{redis: {{url: \"{}\", timeout: 10s}}}}\n", redis.url())] {
        let (_origin, gateway) = with_a_store(&store);
        let description = ApiDescription::of(&gateway);
        assert_eq!(gateway.get("/").status(), 200);
        let check = |method: &str, path: &str, target: &str, status: u16| {
            check(&gateway, &description, method, path, target, status);
        };
        check("GET", "/", "/", 200);
        check("GET", "/page/{name}", "/page/main.js", 200);
        check("GET", "/page/{name}", "/page/style.css", 200);
        check("GET", "/page/{name}", "/page/none", 404);
        check("GET", "/session", "/session", 200);
        check("POST", "/session", "/session", 400);
        check("DELETE", "/session", "/session", 204);
        for path in [
            "/healthz",
            "/readyz",
            "/metrics",
            "/openapi.json",
            "/api/v1/limits",
            "/api/v1/config",
            "/api/v1/status",
            "/api/v1/advice",
        ] {
            check("GET", path, path, 200);
        }
        check("GET", "/api/v1/history", "/api/v1/history?minutes=1", 200);
        check("GET", "/api/v1/history", "/api/v1/history?minutes=0", 400);
        check("GET", "/api/v1/events/recent", "/api/v1/events/recent?minutes=0", 400);
        let ban = |body: &str| {
            let response = request(&gateway, "POST", "/api/v1/bans").json(body).send();
            description.check("POST", "/api/v1/bans", &response);
            response
        };
        let address = ban(r#"{"address": "198.51.100.7", "for": "1h", "reason": "<b>"}"#);
        let key = ban(r#"{"limit": "pace", "key": {"client_ip": "198.51.100.8"}, "for": "1h"}"#);
        assert_eq!((address.status, key.status), (201, 201));
        for (wrong, status) in
            [("", 400), ("{", 400), (r#"{"for": "1h"}"#, 400), (r#"{"limit": "x", "for": "1h"}"#, 404)]
        {
            assert_eq!(ban(wrong).status, status, "{wrong}");
        }
        let id = address.json()["id"].as_str().expect("an id").to_owned();
        check("GET", "/api/v1/bans", "/api/v1/bans", 200);
        check("GET", "/api/v1/bans/{id}", &format!("/api/v1/bans/{id}"), 200);
        check("GET", "/api/v1/bans/{id}", "/api/v1/bans/none", 404);
        check("GET", "/api/v1/bans/export", "/api/v1/bans/export?format=nft", 200);
        check("GET", "/api/v1/bans/export", "/api/v1/bans/export?format=x", 400);
        let state = "/api/v1/limits/{name}/state";
        for (limit, key) in
            [("pace", "client_ip=198.51.100.8"), ("bucket", "header.x-user=a"), ("flight", "client_ip=198.51.100.7")]
        {
            check("GET", state, &format!("/api/v1/limits/{limit}/state?{key}"), 200);
            check("POST", "/api/v1/limits/{name}/hit", &format!("/api/v1/limits/{limit}/hit?{key}"), 200);
            check("DELETE", state, &format!("/api/v1/limits/{limit}/state?{key}"), 204);
            check("GET", state, &format!("/api/v1/limits/{limit}/state?host=x"), 400);
            check("GET", state, &format!("/api/v1/limits/no-{limit}/state?{key}"), 404);
        }
        check("DELETE", "/api/v1/bans/{id}", &format!("/api/v1/bans/{id}"), 204);
        check("DELETE", "/api/v1/bans", "/api/v1/bans?limit=pace&client_ip=198.51.100.8", 200);
        check("DELETE", "/api/v1/bans", "/api/v1/bans?address=198.51.100.7", 404);
        check("DELETE", "/api/v1/bans", "/api/v1/bans", 400);
        check("POST", "/api/v1/reload", "/api/v1/reload", 200);
        check("GET", "/api/v1/events/recent", "/api/v1/events/recent", 200);
    }
}

#[test]
fn no_operation_answers_another_site_or_another_name() {
    let (_origin, gateway) = with_a_store("");
    let description = ApiDescription::of(&gateway);
    let host = gateway.admin().to_string();
    for (method, path, _) in description.operations() {
        let ask = || Request::new(gateway.admin(), &method, &path.replace("{name}", "pace").replace("{id}", "none"));
        let foreign = [
            ask().host("rebound.example"),
            ask().host(&host).header("Origin", "https://evil.example"),
            ask().host(&host).header("Origin", "null"),
            ask().host(&host).header("Sec-Fetch-Site", "cross-site"),
            ask().host(&host).header("Sec-Fetch-Site", "same-site"),
        ];
        // Monitoring may ask from anywhere.
        let is_monitoring = ["/healthz", "/readyz", "/metrics"].contains(&path.as_str());
        assert_eq!(description.describes(&method, &path, 403), !is_monitoring, "{method} {path}");
        for request in foreign.iter().filter(|_| !is_monitoring) {
            let response = request.send();
            assert_eq!(response.status, 403, "{method} {path}");
            description.check(&method, &path, &response);
        }
        let ambiguous = [
            ask().host(&host).header("Host", "rebound.example"),
            ask().host("rebound.example").header("Host", &host),
            ask().host(&host).header("Host", &host),
            ask().host(&host).header("Origin", &format!("http://{host}")).header("Origin", "https://evil.example"),
        ];
        for request in ambiguous.iter().filter(|_| !is_monitoring) {
            let response = request.send();
            assert_eq!(response.status, 400, "{method} {path}");
            description.check(&method, &path, &response);
        }
    }
}

#[test]
fn every_operation_but_those_of_monitoring_and_of_the_page_needs_the_token() {
    let (origin, open) = with_a_store("");
    let description = ApiDescription::of(&open);
    let config = format!("admin: {{address: 127.0.0.1:0, token_file: token}}\nupstream: {}\n{LIMITS}", origin.url());
    let gateway = Gateway::with_token(config);
    let operations = description.operations();
    assert!(operations.iter().any(|(_, path, _)| path == "/api/v1/bans"), "{operations:?}");
    for (number, (method, path, is_public)) in operations.into_iter().enumerate() {
        // Each from an address of its own: one that goes on guessing has to wait.
        let from = format!("127.0.1.{}", number + 1);
        let target = path.replace("{name}", "pace").replace("{id}", "none");
        let ask = || request(&gateway, &method, &target).from(&from);
        if is_public {
            assert!(!["401", "403"].contains(&ask().status().to_string().as_str()), "{method} {path}");
            continue;
        }
        for wrong in
            [ask(), ask().header("Authorization", "Bearer s3cre"), ask().header("Authorization", "Basic s3cret")]
        {
            let response = wrong.send();
            assert_eq!(response.status, 401, "{method} {path}");
            description.check(&method, &path, &response);
        }
    }
}
