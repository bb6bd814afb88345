//! Whether all is well: the same verdict from the API, in the terminal and as a metric.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, ApiDescription, Gateway, Origin, eventually, throughout};

/// An application whose every login fails.
fn failing() -> Origin {
    Origin::answering(|received| {
        if received.head.contains("/login") { Answer::new(401, &[], "wrong") } else { Answer::ok("page") }
    })
}

fn start(origin: &Origin, limits: &str) -> Gateway {
    Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nroutes:\n  - name: login\n    match: /login\n    \
         outcome: {{failure: {{status: 401}}, success: {{status: 200}}}}\n    limits: {limits}\n  - {{name: pages, match: '/*'}}\n",
        origin.url()
    ))
}

/// The status, whose verdict the command and the metric say as well.
#[track_caller]
fn status(gateway: &Gateway) -> Value {
    let response = gateway.admin_request("GET", "/api/v1/status").send();
    ApiDescription::of(gateway).check("GET", "/api/v1/status", &response);
    response.json()
}

/// Waits until the verdict has this level, and the terminal and the metric say it too.
#[track_caller]
fn says(gateway: &Gateway, level: &str, sentence: &str) {
    eventually(&format!("the level is {level}: {}", status(gateway)["verdict"]), || {
        status(gateway)["verdict"]["level"] == json!(level)
    });
    let told = status(gateway)["verdict"]["sentence"].as_str().expect("a sentence").to_owned();
    assert!(told.contains(sentence), "{told}");
    // Seconds that are left pass between the two.
    let words = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
    let printed = gateway.run(&["status"]).stdout;
    assert_eq!(printed.lines().next().map(words), Some(words(&told)));
    eventually("the metric has the level", || {
        let metrics = gateway.admin_request("GET", "/metrics").send().text();
        ["well", "notice", "attack", "trouble"].iter().all(|one| {
            metrics.contains(&format!("portcullis_verdict{{level=\"{one}\"}} {}\n", u8::from(*one == level)))
        })
    });
}

fn fail(gateway: &Gateway, times: usize) {
    for _ in 0..times {
        gateway.post("/login").send();
    }
}

#[test]
fn sign_ins_that_fail_are_an_attack_although_none_is_denied() {
    let origin = failing();
    let gateway = start(&origin, "[]");
    gateway.get("/page").send();
    says(&gateway, "well", "All is well. 1 request passed and 0 were denied in the last minute.");
    fail(&gateway, 25);
    says(&gateway, "attack", "Under attack: 25 of 25 sign-ins failed in the last minute.");
    assert_eq!(
        status(&gateway)["last_minute"],
        json!({"passed": 26, "denied": 0, "errors": 0, "signed_in": 0, "failed": 25})
    );
    let history = gateway.admin_request("GET", "/api/v1/history?minutes=5").send().json();
    let sum = |word: &str| -> Option<u64> {
        Some(history["routes"]["login"][word].as_array()?.iter().filter_map(Value::as_u64).sum())
    };
    assert_eq!((sum("failure"), sum("success"), sum("neither")), (Some(25), Some(0), Some(0)), "{history}");
    assert_eq!(history["routes"]["pages"].get("failure"), None);
}

#[test]
fn many_denials_are_an_attack_and_name_the_limit() {
    let origin = Origin::start();
    let gateway = start(&origin, "[{name: pace, key: client_ip, rate: 5/hour}]");
    fail(&gateway, 5 + 19);
    says(&gateway, "well", "5 requests passed and 19 were denied");
    fail(&gateway, 1);
    says(
        &gateway,
        "attack",
        "Under attack: 5 requests passed and 20 were denied in the last minute. Most by the limit pace: 20.",
    );
}

#[test]
fn a_lockdown_is_an_attack_while_nobody_asks_for_the_route() {
    let origin = failing();
    let gateway = start(&origin, "[{name: lockdown, key: [], count: failures, rate: 3/hour}]");
    says(&gateway, "well", "All is well.");
    fail(&gateway, 3);
    says(
        &gateway,
        "attack",
        "The limit lockdown locks the route login for everyone, also with the right password, for ",
    );
    assert_eq!(status(&gateway)["last_minute"]["denied"], json!(0));
    let reset = gateway.admin_request("DELETE", "/api/v1/limits/lockdown/state").send();
    assert_eq!(reset.status, 204, "{}", reset.text());
    says(&gateway, "well", "All is well.");
}

#[test]
fn a_ban_of_a_limit_without_a_key_locks_as_well() {
    let origin = Origin::start();
    let gateway = start(&origin, "[{name: all, key: [], rate: 1000/hour}]");
    let ban = r#"{"limit": "all", "key": {}, "for": "10m", "reason": "night"}"#;
    let banned = gateway.admin_request("POST", "/api/v1/bans").json(ban).send();
    assert_eq!(banned.status, 201, "{}", banned.text());
    says(
        &gateway,
        "attack",
        "A ban of the limit all locks the route login for everyone, also with the right password, for ",
    );
}

fn is_lockdown(gateway: &Gateway, limit: &str, value: u8) -> bool {
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    metrics.contains(&format!("portcullis_lockdown{{limit=\"{limit}\"}} {value}\n"))
}

#[test]
fn a_limit_of_concurrent_requests_locks_while_it_is_full_or_banned() {
    let origin = Origin::answering(|_| Answer::ok("late").after(Duration::from_secs(5)));
    let gateway = start(&origin, "[{name: few, key: [], concurrent: 1}]");
    says(&gateway, "well", "All is well.");
    assert!(is_lockdown(&gateway, "few", 0));
    let mut under_way = gateway.connect();
    under_way.send("GET /login HTTP/1.1\r\nHost: a\r\n\r\n");
    let words =
        "The limit few locks the route login for everyone, also with the right password, until one of the requests";
    says(&gateway, "attack", words);
    eventually("the metric says so", || is_lockdown(&gateway, "few", 1));
    drop(under_way);
    let ban = r#"{"limit": "few", "key": {}, "for": "1h"}"#;
    assert_eq!(gateway.admin_request("POST", "/api/v1/bans").json(ban).send().status, 201);
    says(&gateway, "attack", "A ban of the limit few locks the route login for everyone");
}

#[test]
fn a_limit_that_delays_or_challenges_locks_nothing_but_a_ban_of_it_does() {
    let origin = Origin::start();
    for then in ["{delay: 100ms}", "{challenge: pow}"] {
        let gateway = start(&origin, &format!("[{{name: all, key: [], rate: 3/minute, then: {then}}}]"));
        for _ in 0..4 {
            gateway.get("/login").send();
        }
        says(&gateway, "well", "All is well.");
        assert!(is_lockdown(&gateway, "all", 0), "{then}");
        let ban = r#"{"limit": "all", "key": {}, "for": "1h"}"#;
        assert_eq!(gateway.admin_request("POST", "/api/v1/bans").json(ban).send().status, 201);
        says(&gateway, "attack", "A ban of the limit all locks the route login for everyone");
        assert_eq!(gateway.get("/login").send().status, 429, "{then}");
    }
}

#[test]
fn a_server_that_is_down_is_trouble_and_the_attack_is_named_beside_it() {
    let gateway = Gateway::start(
        "admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\nlimits: [{name: pace, key: client_ip, rate: 1/hour}]\n",
    );
    for _ in 0..25 {
        gateway.get("/").send();
    }
    says(&gateway, "trouble", "No server of ");
    let told = status(&gateway)["verdict"]["sentence"].as_str().expect("a sentence").to_owned();
    assert!(told.contains(" Under attack: ") && told.contains("Most by the limit pace: 24."), "{told}");
}

#[test]
fn a_limit_of_every_request_locks_every_route_and_the_metrics_say_so() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nlimits:\n  - {{name: all, key: [], rate: 3/hour}}\n  \
         - {{name: calm, key: [], rate: 1000/hour}}\n",
        origin.url()
    ));
    let locked = |name: &str, value: u8| is_lockdown(&gateway, name, value);
    eventually("nothing is locked", || locked("all", 0) && locked("calm", 0));
    for _ in 0..3 {
        gateway.get("/").send();
    }
    let words = "The limit all locks every route for everyone, also with the right password, for ";
    says(&gateway, "attack", words);
    eventually("the limit is locked", || locked("all", 1) && locked("calm", 0));
}

#[test]
fn an_application_that_is_down_is_trouble_until_it_has_answered() {
    let origin = Origin::start();
    let address = origin.address();
    let gateway = start(&origin, "[]");
    drop(origin);
    let metric =
        |value: u8| format!("portcullis_upstream_healthy{{upstream=\"{address}\",server=\"{address}\"}} {value}\n");
    let metrics = || gateway.admin_request("GET", "/metrics").send().text();
    assert_eq!(gateway.get("/page").send().status, 502);
    // Longer than the server is passed over.
    throughout(Duration::from_millis(2400), || assert!(metrics().contains(&metric(0)), "{}", metrics()));
    says(&gateway, "trouble", &format!("No server of {address} is healthy: {address}."));
    let told = status(&gateway);
    assert_eq!(told["upstreams"][0]["servers"][0]["healthy"], json!(false), "{told}");
    assert_eq!(told["last_minute"]["errors"], json!(1), "{told}");
    let requests = "0 requests passed, 0 were denied and 1 ended in an error in the last minute.";
    let parts = told["verdict"]["parts"].as_array().expect("a list");
    assert!(parts.iter().any(|part| part["about"] == "requests" && part["sentence"] == requests), "{told}");
    let _back = Origin::start_on(address);
    assert_eq!(gateway.get("/page").send().status, 200);
    says(&gateway, "well", "All is well. 1 request passed, 0 were denied and 1 ended in an error in the last minute.");
    assert!(metrics().contains(&metric(1)), "{}", metrics());
}

/// What the status says does not work.
fn faults(gateway: &Gateway) -> Vec<String> {
    let told = status(gateway);
    let faults = told["faults"].as_array().cloned().unwrap_or_default();
    faults.iter().map(|fault| fault["about"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn what_cannot_be_written_is_trouble_until_it_can_be() {
    let origin = Origin::start();
    let config = |records: &str| {
        format!(
            "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nstore: {{memory: {{snapshot: gone/state}}}}\n\
             limits: [{{name: pace, key: client_ip, rate: 1/hour}}]\n{records}",
            origin.url()
        )
    };
    let gateway = Gateway::start(config(""));
    let (log, trail) = (gateway.path("trail/log.jsonl"), gateway.path("trail"));
    fs::create_dir(&trail).expect("it is not there");
    gateway.write_config(config("log: {file: trail/log.jsonl}\naudit: {file: trail/audit.jsonl}\n"));
    gateway.signal("HUP");
    eventually("the log goes there", || fs::metadata(&log).is_ok_and(|log| log.len() > 0));
    fs::rename(&trail, gateway.path("elsewhere")).expect("it is there");
    assert_eq!([(); 2].map(|()| gateway.get("/").status()), [200, 429]);
    eventually("all are told", || faults(&gateway) == ["log", "audit", "snapshot"]);
    let sentence = "The audit trail cannot be written to its file: ";
    says(&gateway, "trouble", sentence);
    let printed = gateway.run(&["status"]).stdout;
    for words in [sentence, "The log cannot be written to trail/log.jsonl: ", "The snapshot cannot be written to "] {
        assert_eq!(printed.matches(words).count(), 2, "in the verdict and as a fault: {printed}");
    }
    for folder in ["trail", "gone"] {
        fs::create_dir(gateway.path(folder)).expect("it is not there");
    }
    eventually("no event is waited for", || faults(&gateway) == ["log"]);
    gateway.get("/").send();
    says(&gateway, "well", "All is well.");
}

#[test]
fn connections_that_have_to_wait_are_trouble() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nserver: {{max_connections: 1}}\n",
        origin.url()
    ));
    assert_eq!(faults(&gateway), Vec::<String>::new());
    let mut only = gateway.connect();
    assert_eq!(gateway.get("/").send_on(&mut only).status, 200);
    says(&gateway, "trouble", "New connections had to wait within the last minute: as many are open as ");
}
