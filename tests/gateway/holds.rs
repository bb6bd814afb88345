//! Delay and tarpit: held without a thread, ended when the client leaves, bounded in number.

use std::time::Duration;

use crate::support::{Gateway, Origin, Stopwatch, eventually};

/// Everything beyond one request an hour is held.
fn holding(origin: &Origin, then: &str, more: &str) -> Gateway {
    let gateway = Gateway::start(format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nlimits:\n  - {{name: slow, key: client_ip, rate: 1/hour, then: {then}}}\n{more}",
        origin.url()
    ));
    assert_eq!(gateway.get("/first").status(), 200);
    gateway
}

/// The gauge of requests that are held.
fn held(gateway: &Gateway) -> usize {
    let metrics = crate::support::Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("portcullis_held_requests "));
    line.expect("the gauge").parse().expect("a number")
}

#[test]
fn a_delayed_request_is_held_and_then_forwarded() {
    let origin = Origin::start();
    let gateway = holding(&origin, "{delay: 700ms}", "");
    let waited = Stopwatch::start();
    assert_eq!(gateway.get("/held").status(), 200);
    assert!(waited.elapsed() >= Duration::from_millis(700), "{:?}", waited.elapsed());
    assert_eq!(origin.count(), 2);
    let line = gateway.log_line("/held");
    assert_eq!((line["decision"].as_str(), line["limit"].as_str()), (Some("delayed"), Some("slow")));
    assert_eq!(line["status"], 200);
}

#[test]
fn a_tarpitted_request_is_held_and_then_denied() {
    let origin = Origin::start();
    let gateway = holding(&origin, "{tarpit: 700ms}", "");
    let waited = Stopwatch::start();
    let denial = gateway.post("/held").form("a=b").send();
    assert_eq!(denial.status, 429);
    assert!(denial.header("retry-after").is_some());
    assert!(waited.elapsed() >= Duration::from_millis(700), "{:?}", waited.elapsed());
    assert_eq!(origin.count(), 1);
    let line = gateway.log_line("/held");
    assert_eq!((line["decision"].as_str(), line["limit"].as_str()), (Some("tarpitted"), Some("slow")));
}

#[test]
fn a_shadow_holds_nobody() {
    let origin = Origin::start();
    for then in ["{delay: 30s}, shadow: true", "{tarpit: 30s}, shadow: true"] {
        let gateway = holding(&origin, then, "");
        let waited = Stopwatch::start();
        assert_eq!(gateway.get("/free").status(), 200);
        assert!(waited.elapsed() < Duration::from_secs(5), "{:?}", waited.elapsed());
        assert_eq!(gateway.log_line("/free")["decision"], "allowed");
    }
}

#[test]
fn beyond_the_bound_nobody_is_held_and_all_are_denied_at_once() {
    let origin = Origin::start();
    for (then, wait) in [("{delay: 30s}", Some("30")), ("{tarpit: 30s}", None)] {
        let gateway = holding(&origin, then, "server: {max_held: 2}");
        let before = origin.count();
        let mut waiting = [gateway.connect(), gateway.connect()];
        for client in &mut waiting {
            client.send(gateway.get("/held").bytes());
        }
        eventually("both are held", || held(&gateway) == 2);
        let denial = gateway.get("/beyond").send();
        assert_eq!(denial.status, 429);
        let retry_after = denial.header("retry-after").expect("a wait");
        assert!(wait.is_none_or(|wait| wait == retry_after), "{retry_after}");
        let id = denial.header("x-request-id").expect("an id");
        let why = gateway.run(&["why", id]).stdout;
        let cause = "; it was to be held, and as many requests are held as `server.max_held` allows";
        assert!(why.contains(cause), "{why}");
        let line = gateway.log_line("/beyond");
        assert_eq!((line["decision"].as_str(), line["limit"].as_str()), (Some("denied"), Some("slow")));
        drop(waiting);
        eventually("their places are free again", || held(&gateway) == 0);
        assert_eq!(origin.count(), before);
    }
}

#[test]
fn a_request_whose_client_leaves_is_not_forwarded() {
    let origin = Origin::start();
    let gateway = holding(&origin, "{delay: 1s}", "");
    let post = gateway.post("/left").body("text/plain", vec![b'x'; 40_000]).bytes();
    // Plainly, with another request behind it, and with a body that was not read yet: it does not matter how the client left.
    let sent = [gateway.get("/left").bytes(), [gateway.get("/left").bytes(), b"GET".to_vec()].concat(), post];
    for bytes in sent {
        let mut client = gateway.connect();
        client.send_until_full(&bytes);
        eventually("it is held", || held(&gateway) == 1);
        drop(client);
        eventually("its place is free again", || held(&gateway) == 0);
        assert_eq!(gateway.log_line("/left")["status"], serde_json::Value::Null);
    }
    // One that came later is forwarded after its delay: those of clients that left would have been by then.
    assert_eq!(gateway.get("/stayed").status(), 200);
    assert_eq!(
        origin.requests().iter().map(|request| request.target.as_str()).collect::<Vec<_>>(),
        ["/first", "/stayed"]
    );
}

#[test]
fn a_held_request_ends_at_once_when_its_client_leaves_whatever_its_body_and_however_it_leaves() {
    let origin = Origin::start();
    let gateway = holding(&origin, "{tarpit: 120s}", "");
    let head = |framing: &str| format!("POST /left HTTP/1.1\r\nHost: app.example\r\n{framing}\r\n\r\n").into_bytes();
    let bodies = [
        ("none", head("Content-Length: 0")),
        ("whole", [head("Content-Length: 5"), b"a=b&c".to_vec()].concat()),
        ("half", [head("Content-Length: 50"), b"a=b&c".to_vec()].concat()),
        ("unread", [head("Content-Length: 40000"), vec![b'x'; 40_000]].concat()),
        ("whole chunks", [head("Transfer-Encoding: chunked"), b"3\r\na=b\r\n0\r\n\r\n".to_vec()].concat()),
        ("half a chunk", [head("Transfer-Encoding: chunked"), b"30\r\na=b".to_vec()].concat()),
        ("with a request behind", [head("Content-Length: 1"), b"aGET / HTTP/1.1\r\n".to_vec()].concat()),
    ];
    for (body, bytes) in &bodies {
        for way in ["closes", "resets", "closes its side"] {
            let mut client = gateway.connect();
            client.send_until_full(bytes);
            eventually("it is held", || held(&gateway) == 1);
            let waited = Stopwatch::start();
            match way {
                "closes" => drop(client),
                "resets" => client.abort(),
                _ => {
                    client.finish();
                    assert!(client.rest().is_empty());
                }
            }
            eventually("its place is free again", || held(&gateway) == 0);
            assert!(waited.elapsed() < Duration::from_secs(5), "{body}, {way}: {:?}", waited.elapsed());
        }
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_held_request_gives_its_slot_back_when_its_client_leaves() {
    let origin = Origin::start();
    let gateway = holding(
        &origin,
        "{delay: 30s}",
        "routes:\n  - match: /one\n    limits:\n      - {name: one, key: client_ip, concurrent: 1}\n",
    );
    let mut client = gateway.connect();
    client.send(gateway.get("/one").bytes());
    eventually("it is held", || held(&gateway) == 1);
    assert_eq!(gateway.get("/one").status(), 429);
    drop(client);
    eventually("there is room for another", || {
        let answered = gateway.stdout().len();
        let mut next = gateway.connect();
        next.send(gateway.get("/one").bytes());
        eventually("it is held or answered", || held(&gateway) == 1 || gateway.stdout().len() > answered);
        held(&gateway) == 1
    });
}

#[test]
fn silence_and_timeouts_do_not_end_a_hold() {
    let origin = Origin::start();
    let timeouts = "server: {timeouts: {header: 300ms, body_idle: 300ms, keepalive: 300ms}}";
    let gateway = holding(&origin, "{delay: 2s}", timeouts);
    let mut client = gateway.connect();
    client.send(gateway.post("/held").form("a=b").bytes());
    assert_eq!(client.response().status, 200);
    assert_eq!(origin.last().text(), "a=b");
}

#[test]
fn a_drain_waits_for_nobody_who_is_held() {
    let origin = Origin::start();
    for then in ["{delay: 60s}", "{tarpit: 60s}"] {
        let mut gateway = holding(&origin, then, "");
        let before = origin.count();
        let mut client = gateway.connect();
        client.send(gateway.get("/held").bytes());
        eventually("it is held", || held(&gateway) == 1);
        let waited = Stopwatch::start();
        gateway.signal("TERM");
        assert_eq!(client.response().status, 429);
        assert_eq!(gateway.ended().code(), Some(0));
        assert!(waited.elapsed() < Duration::from_secs(5), "{:?}", waited.elapsed());
        assert_eq!(origin.count(), before);
    }
}
