//! Pipelined requests: each is read by itself, wherever it begins and however it is cut.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{Answer, Gateway, Origin, all_is_read, eventually};

/// Asks for `/first`, with this before the end of what is sent with it, and sends the rest a moment later, wherever it is
/// cut: the origin has heard of nothing else, and the client got 200 and then 400.
#[track_caller]
fn second_is_refused(second: &str) {
    for first in [
        "GET /first HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na\nb",
        "POST /first HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n0\r\n\r\n",
    ] {
        let origin = Origin::start();
        let gateway = Gateway::start(format!("upstream: {}", origin.url()));
        let sent = [first, second].concat();
        let cuts = [first.len() / 2, first.len() - 1, first.len(), first.len() + second.len() / 2, sent.len()];
        for (number, cut) in cuts.into_iter().enumerate() {
            let mut client = gateway.connect();
            client.send(&sent[..cut]);
            if cut >= first.len() {
                eventually("the first one is forwarded", || origin.count() > number);
            }
            client.send(&sent[cut..]);
            assert_eq!(client.response().status, 200);
            assert_eq!(client.response().status, 400, "{sent:?} cut at {cut}");
            assert!(client.rest().is_empty());
        }
        assert!(origin.heads().iter().all(|head| head.target == "/first"), "{}", origin.bytes());
    }
}

#[test]
fn a_bare_line_feed_is_refused_in_every_head_of_a_connection() {
    second_is_refused("GET /second HTTP/1.1\nHost: a\r\n\r\n");
    second_is_refused("GET /second HTTP/1.1\r\nHost: a\nX: y\r\n\r\n");
    second_is_refused("GET /second HTTP/1.1\r\nHost: a\r\n\n");
    second_is_refused("GET /second HTTP/1.1\r\nHost: a\n\r\n");
}

#[test]
fn requests_may_come_together_and_cut_anywhere_and_are_answered_in_order() {
    const SENT: &str = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nab\ncd\n\
                        POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ne\nf\n\r\n0\r\n\r\nGET /4 HTTP/1.1\r\nHost: a\r\n\r\n";
    let origin = Origin::answering(|received| Answer::ok(&received.target));
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut clients: Vec<_> = (0..=SENT.len()).map(|cut| (cut, gateway.connect())).collect();
    for (cut, client) in &mut clients {
        client.send(&SENT[..*cut]);
    }
    eventually("the first part is read by itself", || all_is_read(gateway.address()));
    for (cut, client) in &mut clients {
        client.send(&SENT[*cut..]);
        for target in ["/1", "/2", "/3", "/4"] {
            let response = client.response();
            assert_eq!((response.status, response.text().as_str()), (200, target), "cut at {cut}");
        }
    }
    let received = origin.requests();
    let bodies: BTreeSet<_> = received.iter().map(|received| (received.target.as_str(), received.text())).collect();
    let expected = [("/1", ""), ("/2", "ab\ncd\n"), ("/3", "e\nf\n"), ("/4", "")];
    assert_eq!(bodies, expected.map(|(target, body)| (target, body.to_owned())).into());
    assert_eq!(received.len(), 4 * (SENT.len() + 1));
}

#[test]
fn what_is_left_of_a_body_is_no_request_however_early_the_answer_and_late_the_rest() {
    // It answers before it reads the body, and never reads it.
    let origin = Origin::scripted(|mut exchange| {
        while exchange.head().is_some() && exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") {}
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for pause in [0, 200, 1500] {
        for framing in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
            let mut client = gateway.connect();
            let begun = if framing.starts_with('T') { "64\r\nhalf" } else { "half" };
            client.send(format!("POST /begun HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n{begun}"));
            assert_eq!(client.response().status, 200);
            std::thread::sleep(Duration::from_millis(pause));
            client.send(smuggled);
            client.finish();
            assert!(client.rest().is_empty(), "{framing} after {pause} ms");
        }
    }
    assert_eq!(gateway.get("/end").status(), 200);
    assert!(!origin.heads().iter().any(|head| head.head.starts_with("GET /smuggled")), "{}", origin.bytes());
}
