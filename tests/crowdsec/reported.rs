//! Bans that begin at a gateway, as a real Local API knows them.

use std::time::Duration;

use serde_json::{Value, json};

use super::engine::{Engine, KEY, PASSWORD};
use crate::support::{Gateway, Origin, RedisServer, eventually};

/// A limit that bans the address, and one that bans a user name with it.
const LIMITS: &str = "limits:\n  - {name: fast, key: client_ip, rate: 3/hour, then: {ban: 1h}}\n  - {name: names, key: \
    [client_ip, query.user], rate: 1/hour, missing: skip, then: {ban: 1h}}\n";

/// What the log says when the API does not take reports.
const FAILED: &str = "bans cannot be reported to ";

#[derive(Debug)]
struct Site {
    gateway: Gateway,
    _origin: Origin,
}

impl Site {
    #[track_caller]
    fn start(engine: &Engine, more: &str) -> Self {
        let origin = Origin::start();
        let config = config(&origin, engine, more);
        Self {
            gateway: Gateway::with_files(config, &[("password", &format!("{PASSWORD}\n")), ("key", KEY)]),
            _origin: origin,
        }
    }

    /// Requests from there until a limit bans the client.
    #[track_caller]
    fn ban_by_limit(&self, client: &str) {
        for _ in 0..3 {
            assert_eq!(self.gateway.get("/").from(client).status(), 200);
        }
        assert_eq!(self.gateway.get("/").from(client).status(), 429);
    }

    #[track_caller]
    fn ban(&self, address: &str, span: &str) -> String {
        let request = json!({"address": address, "for": span, "reason": "seen in the log"});
        let made = self.gateway.admin_request("POST", "/api/v1/bans").json(&request.to_string()).send();
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["id"].as_str().expect("an id").to_owned()
    }

    #[track_caller]
    fn lift(&self, id: &str) {
        assert_eq!(self.gateway.admin_request("DELETE", &format!("/api/v1/bans/{id}")).status(), 204);
    }

    fn said(&self, words: &str) -> usize {
        self.gateway.log_messages().iter().filter(|line| line.starts_with(words)).count()
    }
}

fn config(origin: &Origin, engine: &Engine, more: &str) -> String {
    format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\n{LIMITS}audit: {{crowdsec: {{url: \"http://{}\", login: gateways, \
         password_file: password}}}}\n{more}",
        origin.url(),
        engine.address()
    )
}

/// Value and scenario of each decision in force, sorted.
fn decisions(engine: &Engine) -> Vec<(String, String)> {
    let text = |decision: &Value, name: &str| decision[name].as_str().unwrap_or_default().to_owned();
    let decisions = engine.decisions();
    let mut found: Vec<_> =
        decisions.iter().map(|decision| (text(decision, "value"), text(decision, "scenario"))).collect();
    found.sort();
    found
}

#[track_caller]
fn become_these(engine: &Engine, expected: &[(&str, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(value, scenario)| ((*value).to_owned(), (*scenario).to_owned())).collect();
    let mut found = Vec::new();
    eventually(&format!("the decisions become {expected:?}"), || {
        found = decisions(engine);
        found == expected
    });
}

#[test]
fn bans_by_limits_and_by_hand_are_reported_and_lifting_one_deletes_it() {
    let engine = Engine::start();
    let site = Site::start(&engine, "");
    site.ban_by_limit("127.0.0.7");
    let network = site.ban("198.51.100.0/24", "10m");
    let address = site.ban("2001:db8::7", "10m");
    let operator = "portcullis/operator";
    become_these(
        &engine,
        &[("127.0.0.7", "portcullis/fast"), ("198.51.100.0/24", operator), ("2001:db8::7", operator)],
    );
    let found = engine.decisions();
    let of_limit = found.iter().find(|decision| decision["value"] == "127.0.0.7").expect("just found");
    let kind = |name: &str| of_limit[name].as_str().unwrap_or_default();
    assert_eq!((kind("origin"), kind("type"), kind("scope")), ("portcullis", "ban", "Ip"), "{of_limit}");
    assert!(kind("duration").starts_with("59m"), "{of_limit}");

    // The same address is banned for longer by hand: both are known, each is lifted by itself.
    let longer = site.ban("127.0.0.7", "2h");
    site.lift(&network);
    site.lift(&address);
    let by_limit = ("127.0.0.7", "portcullis/fast");
    // Of several decisions on one value the list shows the longest.
    eventually("the longer ban is reported", || {
        let found = engine.decisions();
        found.len() == 1 && found[0]["scenario"] == operator
    });
    site.lift(&longer);
    become_these(&engine, &[by_limit]);
    let bans = site.gateway.admin_request("GET", "/api/v1/bans").send().json();
    site.lift(bans[0]["id"].as_str().expect("an id"));
    become_these(&engine, &[]);
}

#[test]
fn a_key_without_an_address_alone_is_not_reported() {
    let engine = Engine::start();
    let site = Site::start(&engine, "");
    let guess = || site.gateway.get("/?user=alice").from("127.0.0.7").status();
    assert_eq!([guess(), guess()], [200, 429]);
    site.ban("198.51.100.7", "10m");
    become_these(&engine, &[("198.51.100.7", "portcullis/operator")]);
}

#[test]
fn a_ban_that_an_operator_replaces_has_one_decision() {
    let engine = Engine::start();
    let site = Site::start(&engine, "");
    site.ban("198.51.100.7", "2h");
    become_these(&engine, &[("198.51.100.7", "portcullis/operator")]);
    site.ban("198.51.100.7", "10m");
    eventually("the shorter ban is the one in force", || {
        let found = engine.decisions();
        found.len() == 1 && found[0]["duration"].as_str().is_some_and(|left| left.starts_with("9m"))
    });
}

#[test]
fn what_is_reported_is_not_followed_back() {
    let engine = Engine::start();
    let list = format!(
        "lists: {{community: {{crowdsec: {{url: \"http://{}\", key_file: key, every: 1s}}}}}}\naccess: {{deny: [community]}}\n",
        engine.address()
    );
    let site = Site::start(&engine, &list);
    let id = site.ban("127.0.0.7", "10m");
    become_these(&engine, &[("127.0.0.7", "portcullis/operator")]);
    engine.decide("ban", "127.0.0.8");
    let entries = || site.gateway.admin_request("GET", "/api/v1/status").send().json()["lists"][0]["entries"].clone();
    eventually("the list follows", || entries() != 0);
    assert_eq!((entries(), site.gateway.get("/").from("127.0.0.8").status()), (json!(1), 403));
    site.lift(&id);
    assert_eq!(site.gateway.get("/").from("127.0.0.7").status(), 200);
}

#[test]
fn what_begins_while_the_api_is_away_is_reported_when_it_is_back() {
    let mut engine = Engine::start();
    let site = Site::start(&engine, "");
    engine.stop();
    site.ban_by_limit("127.0.0.7");
    site.ban("198.51.100.7", "1s");
    let lifted = site.ban("198.51.100.8", "1h");
    eventually("the gateway says that the API is away", || site.said(FAILED) == 1);
    site.lift(&lifted);
    eventually("the short ban has ended", || {
        site.gateway.admin_request("GET", "/api/v1/bans").send().json().as_array().is_some_and(|bans| bans.len() == 1)
    });
    engine.start_again();
    become_these(&engine, &[("127.0.0.7", "portcullis/fast")]);
    eventually("the gateway says that it is back", || site.said("bans are reported to ") == 1);
    assert_eq!(site.said(FAILED), 1);
}

#[test]
fn a_login_that_is_over_is_renewed() {
    let mut engine = Engine::start();
    let site = Site::start(&engine, "");
    site.ban("198.51.100.7", "1h");
    become_these(&engine, &[("198.51.100.7", "portcullis/operator")]);
    // An API that starts anew signs its tokens with another secret.
    engine.stop();
    engine.start_again();
    site.ban("198.51.100.8", "1h");
    become_these(&engine, &[("198.51.100.7", "portcullis/operator"), ("198.51.100.8", "portcullis/operator")]);
    assert_eq!(site.said(FAILED), 0);
}

#[test]
fn a_wrong_password_is_one_line_and_a_right_one_needs_no_restart() {
    let engine = Engine::start();
    let site = Site::start(&engine, "");
    site.gateway.write("password", "wrong-passw0rd\n");
    eventually("the password is read", || site.gateway.reloads() == 1);
    site.ban("198.51.100.7", "1h");
    eventually("the gateway says so", || site.said(FAILED) == 1);
    let line = site.gateway.log_messages().into_iter().find(|line| line.starts_with(FAILED)).expect("just seen");
    assert!(line.contains("401 Unauthorized") && line.contains("cscli machines add"), "{line}");
    let tried = engine.logins();
    eventually("it tries again", || engine.logins() >= tried + 2);
    assert_eq!(site.said(FAILED), 1);
    site.gateway.write("password", &format!("{PASSWORD}\n"));
    eventually("the password is read", || site.gateway.reloads() == 2);
    site.ban("198.51.100.8", "1h");
    eventually("the ban is reported", || decisions(&engine).iter().any(|(value, _)| value == "198.51.100.8"));
    assert!(!site.gateway.stderr().iter().any(|line| line.contains("passw0rd")));
}

#[test]
fn in_a_fleet_the_gateway_where_a_ban_began_reports_it_once() {
    let (engine, redis) = (Engine::start(), RedisServer::start());
    let store = format!("store: {{redis: {{url: \"{}\", timeout: 10s}}}}\n", redis.url());
    let gateways = [Site::start(&engine, &store), Site::start(&engine, &store)];
    gateways[0].ban_by_limit("127.0.0.7");
    become_these(&engine, &[("127.0.0.7", "portcullis/fast")]);
    eventually("the other gateway knows of it", || gateways[1].gateway.get("/").from("127.0.0.7").status() == 429);
    let id = gateways[1].ban("198.51.100.7", "1h");
    become_these(&engine, &[("127.0.0.7", "portcullis/fast"), ("198.51.100.7", "portcullis/operator")]);
    assert_eq!(engine.alerts(), 2);
    // Each is lifted at the other gateway.
    eventually("the first gateway knows of it", || {
        gateways[0].gateway.admin_request("GET", &format!("/api/v1/bans/{id}")).status() == 200
    });
    gateways[0].lift(&id);
    let bans = gateways[1].gateway.admin_request("GET", "/api/v1/bans").send().json();
    gateways[1].lift(bans[0]["id"].as_str().expect("an id"));
    become_these(&engine, &[]);
}

#[test]
fn an_api_that_is_none_holds_up_neither_requests_nor_the_end() {
    let nobody = Origin::scripted(|mut exchange| _ = exchange.client_has_left());
    let origin = Origin::start();
    let mut gateway = Gateway::with_files(
        format!(
            "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\n{LIMITS}audit: {{crowdsec: {{url: \"{}\", login: gateways, \
             password_file: password}}}}\n",
            origin.url(),
            nobody.url()
        ),
        &[("password", PASSWORD)],
    );
    for (client, status) in [("127.0.0.7", 200), ("127.0.0.7", 200), ("127.0.0.7", 200), ("127.0.0.7", 429)] {
        assert_eq!(gateway.get("/").from(client).status(), status);
    }
    let watch = crate::support::Stopwatch::start();
    gateway.signal("TERM");
    assert!(gateway.ended().success());
    assert!(watch.elapsed() < Duration::from_secs(6), "{:?}", watch.elapsed());
}
