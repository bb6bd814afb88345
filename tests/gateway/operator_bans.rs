//! Bans by operators.

use serde_json::{Value, json};

use crate::bans::{api, listed, metric, on_each_store, post, wait};
use crate::support::{Gateway, Origin, eventually};

/// Where the store makes no difference.
fn in_memory(config: &str) -> (Origin, Gateway) {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{config}", origin.url()));
    (origin, gateway)
}

#[test]
fn a_banned_address_may_not_enter_until_it_is_unbanned() {
    let config = "limits: [{name: all, key: client_ip, rate: 100/hour}]\n";
    on_each_store(config, |gateway, origin| {
        let (status, ban) = post(gateway, &json!({"address": "127.0.0.0/8", "for": "1h", "reason": "scans"}));
        assert_eq!(status, 201, "{ban}");
        assert_eq!((&ban["address"], &ban["reason"]), (&json!("127.0.0.0/8"), &json!("scans")));
        let denied = gateway.get("/secret").send();
        assert_eq!((denied.status, denied.header("content-type")), (403, Some("application/problem+json")));
        let page = gateway.get("/page").header("Accept", "text/html").send();
        assert_eq!((page.status, page.header("content-type")), (403, Some("text/html; charset=utf-8")));
        let line = gateway.log_line("/secret");
        assert_eq!((&line["decision"], &line["limit"]), (&json!("banned"), &Value::Null));
        assert_eq!(line["ban"], ban["id"]);
        assert!(
            !gateway.log_messages().iter().any(|said| said.contains(" bans ")),
            "an operator's ban is no ban by a limit"
        );
        assert_eq!((listed(gateway), metric(gateway)), (json!([ban]), "1".to_owned()));
        let export = api(gateway, "GET", "/export?format=nginx").send();
        assert_eq!((export.status, export.text()), (200, "deny 127.0.0.0/8;\n".to_owned()));
        assert_eq!(origin.count(), 0);

        let id = format!("/{}", ban["id"].as_str().expect("an id"));
        assert_eq!(api(gateway, "DELETE", &id).status(), 204);
        assert_eq!(gateway.get("/").status(), 200);
        let gone = api(gateway, "DELETE", &id).send();
        assert_eq!((gone.status, gone.header("content-type")), (404, Some("application/problem+json")));
        assert_eq!(listed(gateway), json!([]));
    });
}

#[test]
fn a_list_that_allows_passes_every_ban() {
    let config = "\
lists: {office: {addresses: [127.0.0.1]}}
access: {allow: [office]}
limits: [{name: all, key: [], rate: 1/hour, then: {ban: 1h}}]
";
    on_each_store(config, |gateway, _| {
        assert_eq!(post(gateway, &json!({"address": "127.0.0.1", "for": "1h"})).0, 201);
        assert_eq!(post(gateway, &json!({"limit": "all", "key": {}, "for": "1h"})).0, 201);
        assert_eq!((gateway.get("/").status(), gateway.get("/").status()), (200, 200));
    });
}

#[test]
fn a_key_is_banned_by_hand_whatever_its_limit_does_and_freed_with_its_counts() {
    let config = "\
routes:
  - match: POST /login
    limits:
      - {name: guesses, key: param.user, rate: 2/hour}
      - {name: slow, key: [], rate: 100/hour, then: {delay: 1ms}}
";
    on_each_store(config, |gateway, origin| {
        let login = |user: &str| gateway.post("/login").form(&format!("user={user}")).send();
        assert_eq!([login("alice").status, login("alice").status, login("alice").status], [200, 200, 429]);
        let wanted = json!({"limit": "guesses", "key": {"param.user": " Alice"}, "for": "2h", "reason": "called in"});
        let (status, ban) = post(gateway, &wanted);
        assert_eq!((status, &ban["limit"], &ban["key"]), (201, &json!("guesses"), &json!({"param.user": "alice"})));
        let banned = login("ALICE");
        assert!(banned.status == 429 && (7190..=7200).contains(&wait(&banned)), "{}", wait(&banned));
        assert_eq!(login("bob").status, 200);
        assert!(listed(gateway).to_string().contains(r#"{"param.user":"alice"}"#), "who may lift it sees whose it is");

        // Its counters alone are no ban.
        let state = "/api/v1/limits/guesses/state?param.user=alice";
        let reset = gateway.admin_request("DELETE", state);
        assert_eq!(reset.status(), 204);
        assert_eq!(login("alice").status, 429);
        assert_eq!(api(gateway, "DELETE", &format!("/{}", ban["id"].as_str().expect("an id"))).status(), 204);
        eventually("alice may enter", || login("alice").status == 200);

        let (status, ban) = post(gateway, &json!({"limit": "slow", "key": {}, "for": "1h"}));
        assert_eq!((status, &ban["key"]), (201, &json!({})));
        assert_eq!(login("bob").status, 429);
        assert!(origin.count() >= 4);
    });
}

#[test]
fn lifting_the_ban_of_an_address_lifts_those_by_limits_too() {
    let config = "\
limits:
  - {name: knocks, key: client_ip, rate: 1/hour, then: {ban: 1h}}
  - {name: net, key: {client_ip: {v4: 24}}, rate: 1/hour, then: {ban: 1h}}
  - {name: pairs, key: [client_ip, header.x-key], rate: 1/hour, then: {ban: 1h}}
";
    on_each_store(config, |gateway, _| {
        assert_eq!([gateway.get("/").status(), gateway.get("/").status()], [200, 429]);
        assert_eq!(post(gateway, &json!({"address": "127.0.0.1", "for": "1h"})).0, 201);
        assert_eq!(listed(gateway).as_array().map(Vec::len), Some(4));
        // A network is only itself.
        assert_eq!(api(gateway, "DELETE", "?address=127.0.0.0/16").status(), 404);
        let answer = api(gateway, "DELETE", "?address=127.0.0.1").send();
        let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!((answer["lifted"].as_array().map(Vec::len), &answer["remaining"]), (Some(3), &Value::Null));
        assert_eq!(listed(gateway)[0]["limit"], "pairs");
        eventually("only the pair is denied", || gateway.get("/").header("X-Key", "other").status() == 200);
        assert_eq!(gateway.get("/").status(), 429);
    });
}

#[test]
fn nothing_is_lifted_that_was_not_named() {
    let (_origin, gateway) = in_memory("limits: [{name: pace, key: client_ip, rate: 5/hour}]\n");
    assert_eq!(post(&gateway, &json!({"address": "203.0.113.1", "for": "1h"})).0, 201);
    for unclear in [
        "",
        "?",
        "?all",
        "?all=false",
        "?all=true&address=203.0.113.1",
        "?address=x",
        "?limit=pace",
        "?address=203.0.113.1&client_ip=203.0.113.1",
        "?address=203.0.113.1&address=203.0.113.2",
        "?adress=203.0.113.1",
    ] {
        let answer = api(&gateway, "DELETE", unclear).send();
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (400, Some("application/problem+json")),
            "{unclear}"
        );
    }
    assert_eq!(listed(&gateway).as_array().map(Vec::len), Some(1));
    assert_eq!(api(&gateway, "DELETE", "?all=true").status(), 200);
    assert_eq!(listed(&gateway), json!([]));
}

#[test]
fn a_hit_on_a_banned_key_is_denied_and_charged_as_a_request_would_be() {
    let config = "\
limits:
  - {name: pace, key: client_ip, rate: 5/hour}
  - {name: tries, key: client_ip, rate: 5/hour, count: attempts}
";
    on_each_store(config, |gateway, _| {
        for limit in ["pace", "tries"] {
            let wanted = json!({"limit": limit, "key": {"client_ip": "10.0.0.1"}, "for": "1h"});
            assert_eq!(post(gateway, &wanted).0, 201);
        }
        let ask = |method: &str, path: &str| -> Value {
            let path = format!("/api/v1/limits/{path}?client_ip=10.0.0.1");
            let answer = gateway.admin_request(method, &path).send();
            serde_json::from_slice(&answer.body).expect("JSON")
        };
        for (limit, remaining) in [("pace", 5), ("tries", 4)] {
            let hit = ask("POST", &format!("{limit}/hit"));
            assert_eq!(hit["allowed"], false, "{hit}");
            assert!(hit["retry_after"].as_u64().is_some_and(|left| left > 3590), "{hit}");
            let state = ask("GET", &format!("{limit}/state"));
            assert_eq!(
                (&state["rates"][0]["remaining"], &state["allowed"]),
                (&json!(remaining), &json!(false)),
                "{state}"
            );
        }
    });
}

#[test]
fn what_is_not_understood_is_said_and_bans_nobody() {
    let config =
        "limits: [{name: pace, key: client_ip, rate: 5/hour}, {name: shy, key: [], rate: 5/hour, shadow: true}]\n";
    let (_origin, gateway) = in_memory(config);
    let wrong = [
        (json!({}), 400, "expected JSON"),
        (json!({"address": "127.0.0.1"}), 400, "expected JSON"),
        (json!({"address": "127.0.0.1", "limit": "pace", "for": "1h"}), 400, "expected JSON"),
        (json!({"address": "localhost", "for": "1h"}), 400, "not an address"),
        (json!({"address": "127.0.0.1", "addresses": ["127.0.0.1"], "for": "1h"}), 400, "expected JSON"),
        (json!({"addresses": [], "for": "1h"}), 400, "1 to 10000"),
        (json!({"addresses": ["127.0.0.1", "localhost"], "for": "1h"}), 400, "not an address"),
        (json!({"addresses": ["127.0.0.1", "0.0.0.0/0"], "for": "1h", "force": true}), 400, "everyone"),
        (json!({"addresses": ["127.0.0.1", "0.0.0.0/7"], "for": "1h"}), 400, "`\"force\": true`"),
        (json!({"address": "0.0.0.0/0", "for": "1h", "force": true}), 400, "everyone"),
        (json!({"address": "0.0.0.0/7", "for": "1h"}), 400, "`\"force\": true`"),
        (json!({"address": "2000::/15", "for": "1h", "force": false}), 400, "/16"),
        (json!({"address": "2000::/16", "for": "1h", "force": "yes"}), 400, "expected JSON"),
        (json!({"address": "127.0.0.1", "for": "soon"}), 400, "`for`"),
        (json!({"address": "127.0.0.1", "for": "0"}), 400, "`for`"),
        (json!({"address": "127.0.0.1", "for": "1h", "reason": "a\nb"}), 400, "`reason`"),
        (json!({"limit": "pase", "key": {}, "for": "1h"}), 404, "`pace`"),
        (json!({"limit": "pace", "for": "1h"}), 400, "client_ip"),
        (json!({"limit": "shy", "for": "1h"}), 400, "shadow"),
    ];
    for (document, expected, said) in wrong {
        let (status, problem) = post(&gateway, &document);
        assert_eq!(status, expected, "{document}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(said)), "{document}: {problem}");
    }
    assert_eq!(api(&gateway, "GET", "/export?format=fail2ban").status(), 400);
    assert_eq!((gateway.get("/").status(), metric(&gateway)), (200, "0".to_owned()));
}
