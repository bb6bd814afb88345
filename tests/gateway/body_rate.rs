//! Bodies that are sent or read too slowly are cut off.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};

use crate::http2::over_http2;
use crate::support::{Answer, Gateway, Origin, RawClient, Stopwatch, eventually};

const IDLE: Duration = Duration::from_millis(400);
const STEP: Duration = Duration::from_millis(50);

/// Each `body_idle` is 400 ms.
fn gateway(origin: &Origin, body_rate: u32) -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nserver: {{timeouts: {{body_idle: 400ms, body_rate: {body_rate}}}}}\nlimits:\n  \
         - {{key: param.user, rate: 1000/hour}}",
        origin.url()
    ))
}

/// Sends so many bytes in each step until the connection ends, or all are sent.
fn trickle(client: &mut RawClient, at_a_time: usize, all: usize) {
    for _ in 0..all / at_a_time {
        client.send("x".repeat(at_a_time));
        if client.ends_within(STEP) {
            return;
        }
    }
}

/// An application whose answer has no end.
fn endless() -> Origin {
    Origin::scripted(|mut exchange| {
        exchange.request();
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n");
        while exchange.write(vec![b'x'; 65536]) {}
    })
}

#[test]
fn a_request_whose_body_trickles_ends_after_a_while_and_not_before() {
    let origin = Origin::start();
    let gateway = gateway(&origin, 100);
    // Looked into, and passed on at once.
    for content_type in ["application/x-www-form-urlencoded", "image/png"] {
        let waited = Stopwatch::start();
        let mut client = gateway.connect();
        let head =
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {content_type}\r\nContent-Length: 10000\r\n\r\n");
        client.send(head);
        trickle(&mut client, 1, 200);
        assert!((2 * IDLE..8 * IDLE).contains(&waited.elapsed()), "{content_type}: {:?}", waited.elapsed());
    }
    eventually("every upstream request has ended", || origin.requests().len() == origin.count());
    assert!(origin.requests().iter().all(|received| !received.whole));
    assert_eq!(gateway.log_line("/")["status"], 408);
}

#[test]
fn over_http2_too_and_only_its_stream() {
    let origin = Origin::start();
    let gateway = gateway(&origin, 100);
    over_http2(&gateway, async |sender| {
        let mut sender = sender.ready().await.expect("a connection");
        let post = Request::post("http://a/slow").body(()).expect("a request");
        let (mut response, mut upload) = sender.send_request(post, false).expect("sent");
        let waited = Stopwatch::start();
        let answered = loop {
            let _ = upload.send_data(Bytes::from_static(b"x"), false);
            if let Ok(answered) = tokio::time::timeout(STEP, &mut response).await {
                break answered;
            }
        };
        assert!((2 * IDLE..8 * IDLE).contains(&waited.elapsed()), "{:?}", waited.elapsed());
        assert!(answered.is_err() || answered.is_ok_and(|answer| answer.status() == StatusCode::REQUEST_TIMEOUT));
        let get = Request::get("http://a/").body(()).expect("a request");
        let mut sender = sender.ready().await.expect("a connection");
        let (response, _) = sender.send_request(get, true).expect("sent");
        assert_eq!(response.await.expect("an answer").status(), StatusCode::OK);
    });
}

#[test]
fn a_body_that_keeps_the_pace_arrives_however_long_it_takes_and_without_a_rate_any_does() {
    let origin = Origin::start();
    for (rate, at_a_time, all) in [(100, 20, 1000), (0, 1, 50)] {
        let gateway = gateway(&origin, rate);
        let mut client = gateway.connect();
        client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {all}\r\n\r\n"));
        trickle(&mut client, at_a_time, all);
        assert_eq!(client.response().status, 200, "{rate}");
        assert_eq!(origin.last().body_length, all as u64);
    }
}

#[test]
fn an_application_that_holds_a_body_back_is_not_the_clients_fault() {
    let origin = Origin::scripted(|mut exchange| {
        let Some(mut received) = exchange.head() else { return };
        exchange.pause(6 * IDLE);
        exchange.body(&mut received);
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let gateway = gateway(&origin, 100_000);
    let sent = gateway.post("/").body("application/octet-stream", vec![b'x'; 20 << 20]).send();
    assert_eq!((sent.status, sent.text().as_str()), (200, "ok"));
}

#[test]
fn an_application_that_says_little_now_and_then_is_let_go_on() {
    let origin = Origin::scripted(|mut exchange| {
        exchange.request();
        exchange.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        for _ in 0..8 {
            exchange.pause(IDLE / 2);
            exchange.write("5\r\ndata\n\r\n");
        }
        exchange.write("0\r\n\r\n");
    });
    let gateway = gateway(&origin, 1_000_000);
    let answer = gateway.get("/").send();
    assert_eq!((answer.whole, answer.text()), (true, "data\n".repeat(8)));
}

/// Reads 16 KiB in each step, which are 320 KiB a second, for so long; says whether the answer went on all the time. The
/// socket has room for two steps only: with more its kernel tells the gateway seconds later that something was read.
fn reads_on(gateway: &Gateway, span: Duration) -> bool {
    let mut stream = TcpStream::connect(gateway.address()).expect("the gateway accepts connections");
    socket2::SockRef::from(&stream).set_recv_buffer_size(32 << 10).expect("a size");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    stream.write_all(&gateway.get("/").bytes()).expect("sent");
    let waited = Stopwatch::start();
    while waited.elapsed() < span {
        if stream.read_exact(&mut [0; 16 << 10]).is_err() {
            return false;
        }
        thread::sleep(STEP);
    }
    true
}

#[test]
fn a_client_that_reads_too_slowly_is_cut_off_and_one_that_keeps_the_pace_is_not() {
    let origin = endless();
    assert!(!reads_on(&gateway(&origin, 1_000_000), Duration::from_secs(30)));
    assert!(reads_on(&gateway(&origin, 50_000), 8 * IDLE));
    assert!(reads_on(&gateway(&origin, 0), 8 * IDLE));
}

#[test]
fn a_stream_that_is_read_too_slowly_is_reset() {
    let origin = endless();
    let reads_on = |rate: u32, span: Duration| {
        over_http2(&gateway(&origin, rate), async |sender| {
            let mut sender = sender.ready().await.expect("a connection");
            let get = Request::get("http://a/").body(()).expect("a request");
            let (response, _) = sender.send_request(get, true).expect("sent");
            let mut body = response.await.expect("an answer").into_body();
            let waited = Stopwatch::start();
            while waited.elapsed() < span {
                let Some(Ok(data)) = body.data().await else { return false };
                tokio::time::sleep(STEP).await;
                body.flow_control().release_capacity(data.len()).expect("received");
            }
            true
        })
    };
    assert!(!reads_on(1_000_000, Duration::from_secs(30)));
    assert!(reads_on(50_000, 8 * IDLE));
}

#[test]
fn who_reads_an_answer_said_bit_by_bit_is_not_slow() {
    let origin = Origin::answering(|_| Answer::ok("late").after(4 * IDLE));
    let gateway = gateway(&origin, 1_000_000);
    let mut client = gateway.connect();
    for _ in 0..2 {
        assert_eq!(gateway.get("/").send_on(&mut client).text(), "late");
    }
}
