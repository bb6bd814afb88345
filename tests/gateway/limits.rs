//! Limits: which requests are counted, by which key, and that the count is exact.

use std::sync::{Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::http2::over_http2;
use crate::support::{Answer, Gateway, Origin, Response, Stopwatch, eventually, until};

fn with_limits(origin: &Origin, limits: &[&str]) -> Gateway {
    let limits: Vec<String> = limits.iter().map(|limit| format!("  - {{{limit}}}\n")).collect();
    Gateway::start(format!("upstream: {}\nlimits:\n{}", origin.url(), limits.concat()))
}

pub(crate) fn retry_after(response: &Response) -> u64 {
    response.header("retry-after").expect("Retry-After on a denial").parse().expect("whole seconds")
}

/// The statuses of this many requests, sent at once over as many keep-alive connections as there are threads.
fn storm(gateway: &Gateway, threads: usize, each: usize) -> Vec<u16> {
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        let run = || {
            let mut client = gateway.connect();
            barrier.wait();
            (0..each).map(|_| gateway.get("/").send_on(&mut client).status).collect::<Vec<_>>()
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("no client fails")).collect()
    })
}

#[test]
fn a_thousand_parallel_requests_at_ten_a_minute_reach_the_application_ten_times() {
    let origin = Origin::start();
    let gateway = with_limits(&origin, &["name: ten, key: client_ip, rate: 10/minute"]);
    let statuses = storm(&gateway, 20, 50);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 10);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 990);
    assert_eq!(origin.count(), 10);
}

#[test]
fn the_wait_that_is_named_is_when_the_next_request_passes() {
    let origin = Origin::start();
    let gateway = with_limits(&origin, &["name: pace, key: client_ip, rate: 1 per 2 seconds"]);
    assert_eq!(gateway.get("/").status(), 200);
    let denied = gateway.get("/").send();
    assert_eq!(denied.status, 429);
    let wait = retry_after(&denied);
    assert!((1..=2).contains(&wait), "{wait}");
    thread::sleep(Duration::from_secs(wait));
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn a_shadow_limit_counts_and_reports_but_never_denies() {
    let origin = Origin::start();
    let gateway = with_limits(&origin, &["name: tried, key: client_ip, rate: 1/hour, shadow: true"]);
    assert_eq!(gateway.get("/one").status(), 200);
    assert_eq!(gateway.get("/two").status(), 200);
    let line = gateway.log_line("/two");
    assert_eq!(line["decision"], "allowed");
    assert_eq!(line["shadow"], serde_json::json!(["tried"]));
    assert_eq!(gateway.log_line("/one")["shadow"].as_array().map_or(0, Vec::len), 0);
}

#[test]
fn requests_in_flight_are_bounded_and_a_slot_is_free_again_after_the_answer() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let origin = Origin::answering(move |_| {
        gate.lock().expect("no panic here").recv_timeout(Duration::from_secs(60)).expect("the test lets it answer");
        Answer::ok("done")
    });
    let gateway = with_limits(&origin, &["name: busy, key: client_ip, concurrent: 2"]);
    let mut waiting: Vec<_> = (0..2)
        .map(|_| {
            let mut client = gateway.connect();
            client.send(gateway.get("/").bytes());
            client
        })
        .collect();
    eventually("two requests are in flight", || origin.count() == 2);
    let denied = gateway.get("/").send();
    assert_eq!(denied.status, 429);
    assert!(retry_after(&denied) >= 1);
    assert_eq!(origin.count(), 2);
    open.send(()).expect("the origin waits");
    open.send(()).expect("the origin waits");
    for client in &mut waiting {
        assert_eq!(client.response().status, 200);
    }
    open.send(()).expect("the origin waits");
    eventually("a slot is free again", || gateway.get("/").status() == 200);
}

#[test]
fn a_client_that_hangs_up_keeps_its_slot_as_long_as_the_application_works() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    // It works as soon as it has the head of a request.
    let origin = Origin::scripted(move |mut exchange| {
        let Some(received) = exchange.head() else { return };
        if received.target == "/slow" {
            gate.lock().expect("no panic here").recv_timeout(Duration::from_secs(60)).expect("the test lets it answer");
        }
        exchange.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    let gateway = with_limits(&origin, &["name: busy, key: client_ip, concurrent: 1"]);
    let mut sent = 0;
    let mut leave_with = |request: &str| {
        sent += 1;
        let mut client = gateway.connect();
        client.send(request);
        eventually("the request is in flight", || origin.count() == sent);
        client.abort();
        check_that_the_slot_is_taken(&gateway, &origin, sent);
        open.send(()).expect("the origin waits");
        eventually("the slot is free again", || gateway.get("/").status() == 200);
        sent = origin.count();
    };
    leave_with("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    leave_with("POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    leave_with("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
    over_http2(&gateway, async |sender| {
        let mut sender = sender.ready().await.expect("a connection");
        let request = http::Request::get("http://a/slow").body(()).expect("a request");
        let (_, mut stream) = sender.send_request(request, true).expect("a stream");
        until("the request is in flight", || origin.count() == sent + 1).await;
        stream.send_reset(h2::Reason::CANCEL);
    });
    check_that_the_slot_is_taken(&gateway, &origin, sent + 1);
    open.send(()).expect("the origin waits");
    eventually("the slot is free again", || gateway.get("/").status() == 200);
}

fn check_that_the_slot_is_taken(gateway: &Gateway, origin: &Origin, sent: usize) {
    let left = Stopwatch::start();
    while left.elapsed() < Duration::from_millis(300) {
        assert_eq!(gateway.get("/").status(), 429);
    }
    assert_eq!(origin.count(), sent);
}
