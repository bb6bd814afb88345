//! Webhooks: rate-limited, retried, and never in the way of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{Answer, Gateway, Origin, Request, eventually, key_without_digits};

fn told(webhook: &Origin) -> Vec<Value> {
    let parse = |text: String| serde_json::from_str(&text).expect("a webhook gets JSON");
    webhook.requests().iter().map(|request| parse(request.text())).collect()
}

fn metric(gateway: &Gateway, line: &str) -> Option<u64> {
    let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    metrics.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok())
}

#[test]
fn what_is_not_taken_is_sent_again_until_it_is() {
    let (origin, tries) = (Origin::start(), Arc::new(AtomicUsize::new(0)));
    let webhook = Origin::answering(move |_| match tries.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Answer::new(500, &[], "not now"),
        _ => Answer::ok("thanks"),
    });
    let gateway = Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nnotify: {{ops: {{webhook: \"{}/hooks/s3cret\"}}}}\nlimits: [{{name: pace, key: header.x-user, rate: 1/hour, then: {{deny: {{status: 403}}, notify: [ops]}}}}]",
        origin.url(),
        webhook.url()
    ));
    for expected in [200, 403] {
        assert_eq!(gateway.get("/").header("X-User", "geheim-alice").status(), expected);
    }
    eventually("it is taken", || {
        metric(&gateway, "portcullis_notifications_total{channel=\"ops\",result=\"delivered\"}") == Some(1)
    });
    let messages = told(&webhook);
    assert_eq!((messages.len(), &messages[0]), (3, &messages[2]));
    let message = &messages[2];
    assert_eq!((&message["event"], &message["limit"]), (&json!("denial"), &json!("pace")));
    assert_eq!(
        (key_without_digits(&message["key"]), &message["client"]),
        (json!({"header.x-user": "***"}), &json!("127.0.0.1"))
    );
    assert!(message["until"].is_string() && message["time"].is_string(), "{message}");
    assert!(!message.to_string().contains("geheim"), "{message}");
    let sent = webhook.last();
    assert_eq!((&*sent.method, &*sent.target), ("POST", "/hooks/s3cret"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert!(!gateway.stderr().join("\n").contains("s3cret"));
}

#[test]
fn a_flood_is_one_message_for_each_key_and_a_channel_that_hangs_holds_up_nobody() {
    let (origin, webhook) = (Origin::start(), Origin::start());
    let hanging = Origin::answering(|_| Answer::silence());
    let gateway = Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nnotify:\n  slow: {{webhook: \"{}\"}}\n  ops: {{webhook: \"{}\", every: 1h}}\nlimits: [{{name: pace, key: header.x-user, rate: 1/hour, then: {{deny: {{status: 403}}, notify: [slow, ops]}}}}]",
        origin.url(),
        hanging.url(),
        webhook.url()
    ));
    let mut client = gateway.connect();
    for round in 0..250 {
        for user in ["a", "b", "c", "d"] {
            let status = gateway.get("/").header("X-User", user).send_on(&mut client).status;
            assert_eq!(status, if round == 0 { 200 } else { 403 });
        }
    }
    let of = |result: &str| format!("portcullis_notifications_total{{channel=\"ops\",result=\"{result}\"}}");
    eventually("four are delivered", || metric(&gateway, &of("delivered")) == Some(4));
    assert_eq!(metric(&gateway, &of("suppressed")), Some(249 * 4 - 4));
    assert_eq!(told(&webhook).len(), 4);
}

#[test]
fn what_was_suppressed_is_counted_in_the_next_message_and_a_ban_is_called_a_ban() {
    let (origin, webhook) = (Origin::start(), Origin::start());
    let gateway = Gateway::start(format!(
        "upstream: {}\nnotify: {{ops: {{webhook: \"{}\", every: 1s}}}}\nroutes:\n  - {{match: /a, limits: [{{name: pace, key: client_ip, rate: 1/hour, then: {{deny: {{}}, notify: [ops]}}}}]}}\n  - {{match: /b, limits: [{{name: lockdown, key: [], rate: 1/hour, then: {{ban: 5m, notify: [ops]}}}}]}}\n  - {{match: /c, limits: [{{name: shade, key: [], rate: 1/hour, shadow: true, then: {{deny: {{}}, notify: [ops]}}}}]}}",
        origin.url(),
        webhook.url()
    ));
    for expected in [200, 429, 429, 429] {
        assert_eq!(gateway.get("/a").status(), expected);
    }
    for expected in [200, 429, 429] {
        assert_eq!(gateway.get("/b").status(), expected);
    }
    for _ in 0..3 {
        assert_eq!(gateway.get("/c").status(), 200);
    }
    eventually("both are told", || told(&webhook).len() == 2);
    let ban = told(&webhook).into_iter().find(|message| message["limit"] == "lockdown").expect("a message");
    assert_eq!((&ban["event"], &ban["key"], &ban["client"]), (&json!("ban"), &json!({}), &json!("127.0.0.1")));
    let (name, text) = (ban["gateway"].as_str().expect("a name"), ban["text"].as_str().expect("a text"));
    let expected = format!("portcullis {name}: locks the route /b for everyone for 5m, by the limit lockdown, until ");
    assert!(text.starts_with(&expected) && text.ends_with(", last by the client 127.0.0.1"), "{text}");
    eventually("another is told", || {
        assert_eq!(gateway.get("/a").status(), 429);
        told(&webhook).len() == 3
    });
    assert!(told(&webhook)[2]["suppressed"].as_u64().is_some_and(|suppressed| suppressed >= 2));
}

#[test]
fn a_redirection_is_not_followed() {
    let (origin, elsewhere) = (Origin::start(), Origin::start());
    let place = elsewhere.url();
    let webhook = Origin::answering(move |_| Answer::new(307, &[("Location", &place)], ""));
    let gateway = Gateway::start(format!(
        "upstream: {}\nnotify: {{ops: {{webhook: \"{}\"}}}}\nlimits: [{{name: pace, key: client_ip, rate: 1/hour, then: {{deny: {{}}, notify: [ops]}}}}]",
        origin.url(),
        webhook.url()
    ));
    for expected in [200, 429] {
        assert_eq!(gateway.get("/").status(), expected);
    }
    eventually("it is sent again", || webhook.count() >= 2);
    assert_eq!(elsewhere.count(), 0);
}

#[test]
fn a_changed_channel_takes_effect_on_reload() {
    let (origin, first, second) = (Origin::start(), Origin::start(), Origin::start());
    let config = |webhook: &Origin| {
        format!(
            "upstream: {}\nnotify: {{ops: {{webhook: \"{}\"}}}}\nlimits: [{{name: pace, key: client_ip, rate: 1/hour, then: {{deny: {{}}, notify: [ops]}}}}]",
            origin.url(),
            webhook.url()
        )
    };
    let gateway = Gateway::start(config(&first));
    for expected in [200, 429] {
        assert_eq!(gateway.get("/").status(), expected);
    }
    eventually("the first is told", || first.count() == 1);
    gateway.reload(config(&second));
    assert_eq!(gateway.get("/").status(), 429);
    eventually("the second is told", || second.count() == 1);
    assert_eq!(first.count(), 1);
}
