//! Informational answers: 100 for a body that waits for it, and 103 from the application.

use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{Request, StatusCode};

use crate::http2::over_http2;
use crate::http2_origin::Http2Origin;
use crate::support::{Gateway, Origin, Stopwatch};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An application that says nothing of 100, and reads the body before it answers.
fn unknowing() -> Origin {
    Origin::scripted(|mut exchange| {
        while exchange.request().is_some() {
            exchange.write(OK);
        }
    })
}

/// One that asks for the body.
fn asking() -> Origin {
    Origin::scripted(|mut exchange| {
        while let Some(mut received) = exchange.head() {
            exchange.write("HTTP/1.1 100 Continue\r\n\r\n");
            exchange.body(&mut received);
            exchange.write(OK);
        }
    })
}

#[test]
fn a_body_that_is_sent_at_once_is_forwarded_at_once() {
    let origin = unknowing();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let asked = Stopwatch::start();
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello");
    assert!(client.head().starts_with("HTTP/1.1 200"), "the client does not wait for 100");
    over_http2(&gateway, async |sender| {
        let (response, mut upload) = expecting(&sender).await;
        upload.send_data(Bytes::from_static(b"hello"), true).expect("room");
        assert_eq!(response.await.expect("an answer").status(), StatusCode::OK);
    });
    assert!(asked.elapsed() < Duration::from_millis(900), "{:?}", asked.elapsed());
    assert_eq!(origin.last().body, b"hello");
}

async fn expecting(sender: &SendRequest<Bytes>) -> (ResponseFuture, h2::SendStream<Bytes>) {
    let mut sender = sender.clone().ready().await.expect("a connection");
    let request = Request::post("http://a/").header("expect", "100-continue").body(()).expect("a request");
    sender.send_request(request, false).expect("a stream")
}

/// The next informational answer.
async fn informed(response: &mut ResponseFuture) -> http::Response<()> {
    let next = std::future::poll_fn(|cx| response.poll_informational(cx));
    let next = tokio::time::timeout(Duration::from_secs(20), next).await.expect("it comes before the answer");
    next.expect("one more").expect("a stream")
}

/// Sends a body once it is asked for; says how long that took.
#[track_caller]
fn check_asked(gateway: &Gateway) -> Duration {
    let asked = Stopwatch::start();
    over_http2(gateway, async |sender| {
        let (mut response, mut upload) = expecting(&sender).await;
        assert_eq!(informed(&mut response).await.status(), StatusCode::CONTINUE);
        upload.send_data(Bytes::from_static(b"hello"), true).expect("room");
        assert_eq!(response.await.expect("an answer").status(), StatusCode::OK);
    });
    asked.elapsed()
}

#[test]
fn over_http2_a_client_that_waits_is_asked_for_its_body_when_the_application_asks() {
    let origin = asking();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    assert!(check_asked(&gateway) < Duration::from_millis(900));
    assert_eq!(origin.last().body, b"hello");
}

#[test]
fn over_http2_a_client_that_waits_is_asked_when_a_key_reads_its_body() {
    let origin = unknowing();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlimits:\n  - {{name: one, key: form.user, rate: 9/hour, missing: skip}}",
        origin.url()
    ));
    over_http2(&gateway, async |sender| {
        let asked = Stopwatch::start();
        let mut sender = sender.clone().ready().await.expect("a connection");
        let request = Request::post("http://a/")
            .header("expect", "100-continue")
            .header("content-type", "application/x-www-form-urlencoded");
        let (mut response, mut upload) =
            sender.send_request(request.body(()).expect("a request"), false).expect("a stream");
        assert_eq!(informed(&mut response).await.status(), StatusCode::CONTINUE);
        assert!(asked.elapsed() < Duration::from_millis(900), "{:?}", asked.elapsed());
        upload.send_data(Bytes::from_static(b"user=alice"), true).expect("room");
        assert_eq!(response.await.expect("an answer").status(), StatusCode::OK);
    });
    assert_eq!(origin.last().body, b"user=alice");
}

#[test]
fn over_http2_a_client_that_waits_is_asked_after_a_while_though_the_application_does_not_ask() {
    let origin = unknowing();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    check_asked(&gateway);
    assert_eq!(origin.last().body, b"hello");
}

/// An application that gives hints before it answers.
fn hinting() -> Origin {
    Origin::scripted(|mut exchange| {
        while exchange.request().is_some() {
            exchange.write(
                "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n",
            );
            exchange.write(OK);
        }
    })
}

#[test]
fn early_hints_pass_over_http1_without_what_is_between_neighbours() {
    let origin = hinting();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.head(), "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n");
        assert_eq!(client.head(), "HTTP/1.1 102 Processing\r\n\r\n");
        assert_eq!(client.response().status, 200);
    }
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert!(client.head().starts_with("HTTP/1.1 200"), "a client of HTTP/1.0 knows of one answer alone");
}

#[test]
fn early_hints_pass_over_http2() {
    let origin = hinting();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let mut sender = sender.clone().ready().await.expect("a connection");
        let (mut response, _) =
            sender.send_request(Request::get("http://a/").body(()).expect("a request"), true).expect("a stream");
        let hints = informed(&mut response).await;
        assert_eq!((hints.status(), hints.headers().len()), (StatusCode::EARLY_HINTS, 1));
        assert_eq!(hints.headers()["link"], "</a.css>; rel=preload");
        assert_eq!(informed(&mut response).await.status(), StatusCode::PROCESSING);
        assert_eq!(response.await.expect("an answer").status(), StatusCode::OK);
    });
}

#[test]
fn early_hints_of_an_application_of_http2_pass_over_either_http() {
    let origin = Http2Origin::start();
    let gateway = origin.gateway();
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send("GET /hints HTTP/1.1\r\nHost: a\r\n\r\n");
        for number in 0..2 {
            assert_eq!(
                client.head(),
                format!("HTTP/1.1 103 Early Hints\r\nlink: </{number}.css>; rel=preload\r\n\r\n")
            );
        }
        assert_eq!(client.response().status, 200);
    }
    over_http2(&gateway, async |sender| {
        let mut sender = sender.clone().ready().await.expect("a connection");
        let request = Request::get("http://a/hints").body(()).expect("a request");
        let (mut response, _) = sender.send_request(request, true).expect("a stream");
        for number in 0..2 {
            let hints = informed(&mut response).await;
            assert_eq!((hints.status(), hints.headers().len()), (StatusCode::EARLY_HINTS, 1));
            assert_eq!(hints.headers()["link"], format!("</{number}.css>; rel=preload"));
        }
        assert_eq!(response.await.expect("an answer").status(), StatusCode::OK);
    });
}

#[test]
fn hints_of_http2_without_end_are_cut_and_those_now_and_then_as_well() {
    let origin = Http2Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: ['{}'], http2: true, timeouts: {{response: 1s}}}}",
        origin.url()
    ));
    let asked = Stopwatch::start();
    assert_eq!(gateway.get("/hints-slowly").status(), 504);
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(gateway.get("/hints").status(), 200);
    // Where there is time enough, their number ends them.
    assert_eq!(origin.gateway().get("/hints-at-once").status(), 502);
}

#[test]
fn an_application_of_http2_asks_a_client_that_waits_for_its_body() {
    let origin = Http2Origin::start();
    let gateway = origin.gateway();
    for (path, asks_at_once) in [("/asks", true), ("/reads-first", false)] {
        let asked = Stopwatch::start();
        let mut client = gateway.connect();
        client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"));
        assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(asked.elapsed() < Duration::from_millis(900), asks_at_once, "{:?}", asked.elapsed());
        client.send("hello");
        assert_eq!(client.response().text(), "5 bytes");
    }
}

#[test]
fn hints_without_end_are_cut_and_those_now_and_then_as_well() {
    let origin = Origin::scripted(|mut exchange| {
        let Some(received) = exchange.request() else { return };
        let pause = if received.target == "/slow" { Duration::from_millis(100) } else { Duration::ZERO };
        while exchange.write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n") {
            exchange.pause(pause);
        }
    });
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], timeouts: {{response: 1s}}}}",
        origin.url()
    ));
    let asked = Stopwatch::start();
    assert_eq!(gateway.get("/flood").status(), 502);
    assert_eq!(gateway.get("/slow").status(), 504);
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
}

#[test]
fn the_last_answer_alone_says_what_an_attempt_was() {
    let origin = hinting();
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - name: login\n    match: /login\n    outcome: {{success: {{status: 200}}, failure: {{status: 103}}}}\n    limits:\n      - {{name: guesses, key: client_ip, rate: 1/hour, count: failures}}",
        origin.url()
    ));
    for _ in 0..3 {
        assert_eq!(gateway.get("/login").status(), 200);
    }
}
