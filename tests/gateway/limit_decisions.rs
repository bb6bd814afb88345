//! What a limit made of a request: its story, its metric and the history say the same as the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::bans::post;
use crate::support::{Answer, Gateway, Origin, Response, eventually};

fn start(origin: &Origin, then: &str, more: &str) -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nlimits:\n  - {{name: pace, key: header.x-key, {then}}}\n{more}",
        origin.url()
    ))
}

fn ask(gateway: &Gateway) -> Response {
    gateway.get("/").header("X-Key", "alice").send()
}

fn json_of(gateway: &Gateway, path: &str) -> Value {
    gateway.admin_request("GET", &format!("/api/v1/{path}")).send().json()
}

/// Of the only denied request, everything says this.
#[track_caller]
fn all_say(gateway: &Gateway, denied: &Response, decision: &str) {
    let id = denied.header("x-request-id").expect("an id");
    eventually("the request has its story", || !json_of(gateway, &format!("requests/{id}"))["decision"].is_null());
    let story = json_of(gateway, &format!("requests/{id}"));
    assert_eq!((&story["decision"], &story["limits"][0]["decision"]), (&json!(decision), &json!(decision)), "{story}");
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    let counted = metrics.lines().filter(|line| line.starts_with("portcullis_limit_decisions_total"));
    let counted: Vec<_> = counted.filter(|line| !line.contains("\"allowed\"")).collect();
    assert_eq!(counted, [format!("portcullis_limit_decisions_total{{limit=\"pace\",decision=\"{decision}\"}} 1")]);
    let history = json_of(gateway, "history");
    let sum = |steps: &Value| steps.as_array().expect("steps").iter().filter_map(Value::as_u64).sum::<u64>();
    let decisions = history["limits"]["pace"].as_object().expect("decisions").iter();
    let counted: Vec<_> = decisions.filter(|(name, steps)| *name != "allowed" && sum(steps) > 0).collect();
    assert!(matches!(*counted, [(name, steps)] if name == decision && sum(steps) == 1), "{history}");
}

#[test]
fn a_key_that_is_banned_by_hand() {
    let origin = Origin::start();
    let gateway = start(&origin, "rate: 100/hour", "");
    assert_eq!(post(&gateway, &json!({"limit": "pace", "key": {"header.x-key": "alice"}, "for": "1h"})).0, 201);
    all_say(&gateway, &ask(&gateway), "banned");
}

#[test]
fn a_request_without_a_key_under_a_limit_that_bans() {
    let origin = Origin::start();
    let gateway = start(&origin, "rate: 100/hour, missing: deny, then: {ban: 1h}", "");
    all_say(&gateway, &gateway.get("/").send(), "denied");
}

#[test]
fn a_request_that_cannot_be_held() {
    let origin = Origin::start();
    for then in ["{delay: 30s}", "{tarpit: 30s}"] {
        let gateway = start(&origin, &format!("rate: 1/hour, then: {then}"), "server: {max_held: 0}\n");
        assert_eq!(ask(&gateway).status, 200);
        all_say(&gateway, &ask(&gateway), "denied");
    }
}

#[test]
fn a_ban_that_must_wait_for_the_answers_of_others() {
    let outcome = "routes: [{name: login, match: /*, outcome: {success: {status: 302}}}]\n";
    let answered = Arc::new(AtomicBool::new(false));
    let may_answer = Arc::clone(&answered);
    let origin = Origin::answering(move |_| {
        eventually("the other one is answered", || may_answer.load(Ordering::SeqCst));
        Answer::new(401, &[], "")
    });
    let gateway = start(&origin, "rate: 1/hour, count: failures, then: {ban: 1h}", outcome);
    thread::scope(|scope| {
        scope.spawn(|| ask(&gateway));
        eventually("it is in flight", || origin.count() == 1);
        all_say(&gateway, &ask(&gateway), "denied");
        answered.store(true, Ordering::SeqCst);
    });
}
