//! Draining: requests under way are finished, and no new ones begin.

use std::net::TcpStream;
use std::time::Duration;

use http::Request;
use tokio_tungstenite::tungstenite::Message;

use crate::http2::{ask, over_http2};
use crate::support::{Answer, Gateway, Origin, Stopwatch, eventually, until};

#[test]
fn a_slow_request_is_finished_and_no_new_connection_is_taken() {
    for signal in ["TERM", "INT"] {
        let origin = Origin::answering(|_| Answer::ok("slow").after(Duration::from_secs(1)));
        let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
        let address = gateway.address();
        let mut idle = gateway.connect();
        let mut client = gateway.connect();
        client.send(gateway.get("/").bytes());
        eventually("the request is under way", || origin.count() == 1);
        gateway.signal(signal);
        eventually("no new connection is taken", || TcpStream::connect(address).is_err());
        assert!(idle.rest().is_empty());
        assert_eq!(client.response().text(), "slow");
        assert!(client.rest().is_empty());
        assert_eq!(gateway.ended().code(), Some(0), "{signal}");
    }
}

#[test]
fn a_lame_duck_goes_on_as_before_but_is_not_ready_and_then_drains() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nserver: {{timeouts: {{lame_duck: 3s}}}}",
        origin.url()
    ));
    let readiness = || crate::support::Request::new(gateway.admin(), "GET", "/readyz").status();
    assert_eq!(readiness(), 200);
    let mut standing = gateway.connect();
    assert_eq!(gateway.get("/").send_on(&mut standing).status, 200);
    gateway.signal("TERM");
    let told = Stopwatch::start();
    eventually("it is not ready", || readiness() == 503);
    for _ in 0..3 {
        let last = gateway.get("/").send_on(&mut standing);
        assert_eq!((last.status, last.header("connection")), (200, None));
        let mut new = gateway.connect();
        let first = gateway.get("/").send_on(&mut new);
        assert_eq!((first.status, first.header("connection")), (200, None));
    }
    assert_eq!(crate::support::Request::new(gateway.admin(), "GET", "/healthz").status(), 200);
    assert_eq!(gateway.ended().code(), Some(0));
    assert!(told.elapsed() >= Duration::from_secs(3), "{:?}", told.elapsed());
}

#[test]
fn a_lame_duck_ends_at_once_with_a_second_signal_and_waits_for_nothing_where_another_serves() {
    let origin = Origin::start();
    let config = format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nserver: {{timeouts: {{lame_duck: 10m}}}}",
        origin.url()
    );
    let mut gateway = Gateway::start(&config);
    let mut next = gateway.successor();
    assert_eq!(gateway.ended().code(), Some(0));
    next.signal("TERM");
    eventually("it is not ready", || crate::support::Request::new(next.admin(), "GET", "/readyz").status() == 503);
    next.signal("TERM");
    assert_eq!(next.ended().code(), Some(0));
    assert!(next.log_messages().iter().any(|line| line == "ended at once"), "{:?}", next.log_messages());
}

#[test]
fn a_request_on_its_way_is_answered_and_told_to_close() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    assert_eq!(gateway.get("/").send_on(&mut client).header("connection"), None);
    gateway.signal("TERM");
    // The signal may be on its way yet.
    let mut said = None;
    eventually("one answer is the last", || {
        let answer = gateway.get("/").send_on(&mut client);
        assert_eq!(answer.status, 200);
        said = answer.header("connection").map(str::to_owned);
        said.is_some()
    });
    assert_eq!(said.as_deref(), Some("close"));
    assert!(client.rest().is_empty());
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn streams_of_http2_are_finished() {
    let origin = Origin::answering(|_| Answer::ok("slow").after(Duration::from_secs(1)));
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let status = over_http2(&gateway, async |sender| {
        let request = Request::get("http://app.example/").body(()).expect("a request");
        let (answered, ()) = tokio::join!(ask(&sender, request, None), async {
            until("the application is asked", || origin.count() > 0).await;
            gateway.signal("TERM");
        });
        answered.expect("an answer").status
    });
    assert_eq!(status, 200);
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn an_upgraded_connection_goes_on_until_the_client_closes_it() {
    let origin = Origin::scripted(crate::upgrade::echo);
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let address = gateway.address();
    let mut socket = crate::upgrade::open(&gateway);
    gateway.signal("TERM");
    eventually("no new connection is taken", || TcpStream::connect(address).is_err());
    socket.send(Message::text("hello")).expect("an open socket");
    assert_eq!(socket.read().expect("an echo"), Message::text("hello"));
    drop(socket);
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn draining_has_a_bound() {
    let origin = Origin::answering(|_| Answer::ok("too slow").after(Duration::from_secs(15)));
    let mut gateway = Gateway::start(format!("upstream: {}\nserver: {{timeouts: {{drain: 500ms}}}}", origin.url()));
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    eventually("the request is under way", || origin.count() == 1);
    let waited = Stopwatch::start();
    gateway.signal("TERM");
    gateway.ended();
    assert!(waited.elapsed() < Duration::from_secs(10), "{:?}", waited.elapsed());
    origin.hang_up();
}

#[test]
fn a_second_signal_ends_at_once() {
    let origin = Origin::answering(|_| Answer::ok("too slow").after(Duration::from_secs(15)));
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let address = gateway.address();
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    eventually("the request is under way", || origin.count() == 1);
    let waited = Stopwatch::start();
    gateway.signal("TERM");
    eventually("no new connection is taken", || TcpStream::connect(address).is_err());
    gateway.signal("TERM");
    gateway.ended();
    assert!(waited.elapsed() < Duration::from_secs(10), "{:?}", waited.elapsed());
    origin.hang_up();
}
