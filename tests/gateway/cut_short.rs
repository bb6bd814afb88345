//! An answer that is cut short: its client sees that, and has all that came before it.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use socket2::SockRef;

use crate::http2_abuse::{DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, SETTINGS, frame};
use crate::support::{Exchange, Gateway, Origin};

/// In bytes: more than a client with little room takes before it reads, and less than the kernel keeps for it.
const BEFORE: usize = 60_000;

/// Answers `/whole`, and of everything else the beginning.
fn origin(cut: impl Fn(Exchange) + Send + Sync + 'static) -> (Origin, Gateway) {
    let origin = Origin::scripted(move |mut exchange| {
        while let Some(head) = exchange.head() {
            if head.target != "/whole" {
                return cut(exchange);
            }
            exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {BEFORE}\r\n\r\n"));
            exchange.write("x".repeat(BEFORE));
        }
    });
    let gateway = Gateway::start(format!("upstream: {}\nlog: {{format: json}}", origin.url()));
    (origin, gateway)
}

fn within_a_chunk(mut exchange: Exchange) {
    exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nbegun");
}

fn with_a_malformed_chunk(mut exchange: Exchange) {
    exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\nno number\r\n");
}

fn with_a_reset(mut exchange: Exchange) {
    exchange.write("HTTP/1.1 200 OK\r\n\r\nbegun");
    // The gateway has read what came before the reset.
    exchange.pause(Duration::from_millis(100));
    SockRef::from(&exchange.into_stream()).set_linger(Some(Duration::ZERO)).expect("a connected socket");
}

#[test]
fn a_client_that_knows_no_chunks_gets_a_reset() {
    for cut in [within_a_chunk, with_a_malformed_chunk, with_a_reset] {
        let (_origin, gateway) = origin(cut);
        let mut client = gateway.connect();
        client.send("GET /cut HTTP/1.0\r\nHost: a\r\n\r\n");
        let mut read = Vec::new();
        let end = client.into_stream().read_to_end(&mut read).expect_err("a reset");
        assert_eq!(end.kind(), ErrorKind::ConnectionReset);
        assert!(read.starts_with(b"HTTP/1.1 200 ") && read.ends_with(b"begun"), "{}", read.escape_ascii());
    }
}

#[test]
fn the_answer_before_it_is_there_to_its_end_whatever_was_sent_behind() {
    for cut in [within_a_chunk, with_a_malformed_chunk] {
        let (_origin, gateway) = origin(cut);
        let mut client = gateway.connect();
        client.have_little_room().send("GET /whole HTTP/1.1\r\nHost: a\r\n\r\nGET /cut HTTP/1.1\r\nHost: a\r\n\r\n");
        client.send("POST /third HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n").send("y".repeat(50_000));
        gateway.log_line("/cut");
        assert_eq!(client.response().body.len(), BEFORE);
        let rest = client.rest();
        assert!(rest.starts_with(b"HTTP/1.1 200 ") && !rest.ends_with(b"0\r\n\r\n"), "{}", rest.escape_ascii());
    }
}

#[test]
fn what_is_sent_behind_the_last_request_of_a_connection_takes_nothing_of_its_answer() {
    let (_origin, gateway) = origin(within_a_chunk);
    let mut client = gateway.connect();
    client.have_little_room().send("GET /whole HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    client.send("POST /ignored HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n").send("y".repeat(50_000));
    gateway.log_line("/whole");
    assert_eq!(client.response().body.len(), BEFORE);
    assert!(client.rest().is_empty());
}

/// What the gateway says of a client's mistake comes behind what it has answered, and the client has time to read both.
#[test]
fn a_mistake_takes_nothing_of_an_answer_over_http2() {
    let (_origin, gateway) = origin(within_a_chunk);
    let mut client = gateway.connect();
    client.have_little_room();
    let mut socket = client.into_stream();
    let whole = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x82\x86\x01\x01a\x04\x06/whole");
    let asked = [PREFACE, &frame(SETTINGS, 0, 0, b""), &whole].concat();
    socket.write_all(&asked).expect("the gateway listens");
    gateway.log_line("/whole");
    let ignored = frame(DATA, 0, 3, &[0; 10_000]).repeat(5);
    socket.write_all(&[frame(HEADERS, 0, 0, b""), ignored].concat()).expect("the gateway listens");
    let mut read = Vec::new();
    socket.read_to_end(&mut read).expect("no reset");
    let mut rest = &read[..];
    let (mut body, mut last) = (0, None);
    while let [a, b, c, kind, _, _, _, _, _, behind @ ..] = rest {
        let (payload, next) = behind.split_at(u32::from_be_bytes([0, *a, *b, *c]) as usize);
        body += if *kind == DATA { payload.len() } else { 0 };
        (rest, last) = (next, Some(*kind));
    }
    assert_eq!((body, last), (BEFORE, Some(GOAWAY)));
}
