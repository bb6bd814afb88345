//! The admin API: authorisation, limits and their keys, resets.

use serde_json::{Value, json};

use crate::support::{Gateway, Origin, RedisServer, Request, eventually};

/// In memory, and on a Redis: what the API says is the same.
fn on_each_store(config: &str, check: impl Fn(&Gateway, &Origin)) {
    let redis = RedisServer::start();
    for store in [String::new(), format!("store: {{redis: {{url: \"{}\", timeout: 10s}}}}\n", redis.url())] {
        let origin = Origin::start();
        let config = format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{store}{config}", origin.url());
        check(&Gateway::start(config), &origin);
    }
}

fn api(gateway: &Gateway, method: &str, path: &str) -> Request {
    Request::new(gateway.admin(), method, &format!("/api/v1/limits{path}")).host(&gateway.admin().to_string())
}

#[track_caller]
fn json_of(request: &Request) -> Value {
    let response = request.send();
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    serde_json::from_slice(&response.body).expect("JSON")
}

#[test]
fn a_key_stands_where_requests_left_it_and_a_reset_frees_it() {
    let config = "\
limits: [{name: pace, key: client_ip, rate: 2/hour; 30/day}]
routes:
  - match: POST /login
    limits: [{name: guesses, key: [{client_ip: {v4: 24}}, param.user], rate: 1/hour}]
";
    on_each_store(config, |gateway, origin| {
        let state = || json_of(&api(gateway, "GET", "/pace/state?client_ip=127.0.0.1"));
        assert_eq!(
            state(),
            json!({
                "limit": "pace", "key": ["client_ip"], "allowed": true, "retry_after": 0, "shadow": false, "ban": null,
                "rates": [
                    {"limit": 2, "window": 3600, "remaining": 2, "reset": 0},
                    {"limit": 30, "window": 86400, "remaining": 30, "reset": 0},
                ],
            })
        );
        for _ in 0..2 {
            assert_eq!(gateway.get("/").status(), 200);
        }
        assert_eq!(gateway.get("/").status(), 429);
        let denied = state();
        assert_eq!(denied["allowed"], false);
        assert!((3590..=3600).contains(&denied["retry_after"].as_u64().expect("a number")), "{denied}");
        assert_eq!(denied["rates"][1]["remaining"], 28);
        // Looking charges nothing.
        assert_eq!(state()["rates"][1]["remaining"], 28);
        assert_eq!(json_of(&api(gateway, "GET", "/pace/state?client_ip=127.0.0.2"))["allowed"], true);

        assert_eq!(api(gateway, "DELETE", "/pace/state?client_ip=127.0.0.1").status(), 204);
        eventually("the gateway has heard of the reset", || state()["allowed"] == true);
        assert_eq!(gateway.get("/").status(), 200);

        // The net of the key, and the spelling of names.
        assert_eq!(gateway.post("/login").form("user=Alice").status(), 200);
        let state = |query: &str| json_of(&api(gateway, "GET", &format!("/guesses/state?{query}")))["allowed"].clone();
        assert_eq!(state("client_ip=127.0.0.99&param.user=%20ALICE"), false);
        assert_eq!(state("client_ip=127.0.1.1&param.user=alice"), true);
        assert_eq!(state("client_ip=127.0.0.1&param.user=bob"), true);
        assert_eq!(origin.count(), 4);
    });
}

#[test]
fn a_hit_counts_as_a_request_does() {
    on_each_store("limits: [{name: pace, key: client_ip, rate: 5/hour}]\n", |gateway, origin| {
        let hit = |cost: &str| json_of(&api(gateway, "POST", &format!("/pace/hit?client_ip=127.0.0.1{cost}")));
        assert_eq!(hit("")["rates"][0]["remaining"], 4);
        assert_eq!(hit("&cost=3")["rates"][0]["remaining"], 1);
        assert_eq!(hit("&cost=2")["allowed"], false);
        assert_eq!(gateway.get("/").status(), 200);
        let denied = hit("");
        assert_eq!(denied["allowed"], false);
        assert!(denied["retry_after"].as_u64().is_some_and(|wait| wait > 3000), "{denied}");
        assert_eq!(gateway.get("/").status(), 429);
        assert_eq!(origin.count(), 1);
    });
}

#[test]
fn a_hit_gives_its_slot_back() {
    on_each_store("limits: [{name: flight, key: [], concurrent: 1}]\n", |gateway, _| {
        for _ in 0..3 {
            eventually("the slot is free", || json_of(&api(gateway, "POST", "/flight/hit"))["allowed"] == true);
        }
        eventually("the slot is free", || gateway.get("/").status() == 200);
    });
}

#[test]
fn every_limit_is_told_as_it_is_in_force() {
    let gateway = Gateway::start(
        "admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\nlists: {office: {addresses: [10.0.0.0/8]}}\n\
         notify: {ops: {webhook: \"http://127.0.0.1:1/\"}}\n\
         limits: [{name: \"all in/one\", key: [], rate: 10 per 3 minutes, unless: [office]}]\n\
         routes:\n  - {name: slow, match: /slow, limits: [{name: flight, key: bearer, concurrent: 2}]}\n  \
         - {name: login, match: /login, outcome: {failure: {status: 401}}, known_clients: {of: param.user}, limits: [\
         {name: guessing, key: client_ip, distinct: param.user, rate: 2/hour, count: failures, reset_on: success, \
         unless: [known_client, office], shadow: true, then: {ban: [15m, 1h], notify: [ops]}}]}\n",
    );
    let listed = json_of(&api(&gateway, "GET", ""));
    let expected = json!({
        "name": "all in/one", "key": [], "rates": [{"limit": 10, "window": 180}], "concurrent": null,
        "algorithm": "sliding-window-log", "burst": null, "buckets": null, "cost": 1, "count": "requests",
        "distinct": null, "reset_on": null, "missing": "count", "then": {"deny": {}, "notify": []}, "shadow": false,
        "unless": ["office"], "headers": "full", "on_failure": "local",
        "everywhere": true, "routes": [],
    });
    assert_eq!(listed[0], expected);
    assert_eq!((&listed[1]["name"], &listed[1]["concurrent"]), (&json!("flight"), &json!(2)));
    assert_eq!(listed[1]["routes"], json!(["slow"]));
    assert_eq!((&listed[2]["distinct"], &listed[2]["reset_on"]), (&json!("param.user"), &json!("success")));
    assert_eq!(listed[2]["unless"], json!(["known_client", "office"]));
    assert_eq!(listed[2]["then"], json!({"ban": ["15m", "1h"], "notify": ["ops"]}));
    assert_eq!(listed[2]["shadow"], true);
    let hit =
        |user| json_of(&api(&gateway, "POST", &format!("/guessing/hit?client_ip=10.9.9.9&param.user={user}&cost=1")));
    assert_eq!(["a", "A", "b", "c", "b"].map(|user| hit(user)["allowed"] == true), [true, true, true, false, true]);
    assert_eq!(json_of(&api(&gateway, "GET", "/guessing/state?client_ip=10.9.9.9"))["allowed"], false);
    assert_eq!(json_of(&api(&gateway, "GET", "/all%20in%2Fone/state"))["limit"], "all in/one");
}

#[test]
fn a_token_is_asked_for_and_read_again_when_it_changes() {
    let config = "admin: {address: 127.0.0.1:0, token_file: token}\nupstream: http://127.0.0.1:1\nlimits: [{name: pace, key: [], rate: 1/hour}]\n";
    let gateway = Gateway::with_files(config, &[("token", "first-token\n")]);
    // A request with the token may have any origin.
    let ask = |token: &str| {
        let request = Request::new(gateway.admin(), "GET", "/api/v1/limits").header("Authorization", token);
        request.header("Origin", "https://dashboard.example").send()
    };
    assert_eq!(ask("Bearer first-token").status, 200);
    for wrong in ["Bearer first-toke", "Bearer first-token2", "Basic first-token", "first-token"] {
        let refused = ask(wrong);
        assert_eq!(refused.status, 401);
        assert!(refused.header("www-authenticate").is_some_and(|scheme| scheme.starts_with("Bearer ")));
        assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    }
    assert_eq!(Request::new(gateway.admin(), "GET", "/openapi.json").status(), 401);
    for open in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(Request::new(gateway.admin(), "GET", open).status(), 200);
    }

    let before = gateway.reloads();
    gateway.write("token", "  second-token  \n");
    eventually("the token is read", || gateway.reloads() > before);
    // A program that goes on with the old one guesses nothing, and does not shut out the others at its address.
    assert!((0..10).all(|_| ask("Bearer first-token").status == 401));
    assert_eq!(ask("Bearer second-token").status, 200);
    assert!((0..10).all(|number| ask(&format!("Bearer guess-{number}")).status == if number < 2 { 401 } else { 429 }));
    assert_eq!(ask("Bearer second-token").status, 429);
}

#[test]
fn a_missing_token_file_opens_nothing() {
    let config = "admin: {address: 127.0.0.1:0, token_file: token}\nupstream: http://127.0.0.1:1\n";
    let gateway = Gateway::with_files(config, &[("token", "second-token\n")]);
    let ask =
        |token: &str| Request::new(gateway.admin(), "GET", "/api/v1/limits").header("Authorization", token).send();

    // The old token stays in use.
    let before = gateway.reloads();
    std::fs::remove_file(gateway.path("token")).unwrap();
    gateway.signal("HUP");
    eventually("the file is missed", || gateway.reloads() > before);
    assert_eq!(ask("Bearer second-token").status, 200);
    assert_eq!(ask("Bearer ").status, 401);
    let said = gateway.stderr().join("\n") + &gateway.stdout().join("\n");
    assert!(!said.contains("first-token") && !said.contains("second-token"), "{said}");
}
