//! The end: what is under way is finished, nothing new is begun.

use std::net::TcpStream;
use std::time::Duration;

use crate::support::Answer;
use crate::support::Gateway;
use crate::support::Origin;
use crate::support::Stopwatch;
use crate::support::eventually;

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
fn an_idle_gateway_ends_at_once() {
    let origin = Origin::start();
    let mut gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    assert_eq!(gateway.get("/").send_on(&mut client).status, 200);
    let waited = Stopwatch::start();
    gateway.signal("TERM");
    assert_eq!(gateway.ended().code(), Some(0));
    assert!(waited.elapsed() < Duration::from_secs(5), "{:?}", waited.elapsed());
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
