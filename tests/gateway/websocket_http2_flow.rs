//! Tunnels over HTTP/2 whose client or application does not read: each holds back itself alone.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use http::Request;
use tokio::time::timeout;

use crate::http2::{ask, over_http2};
use crate::support::{Answer, Background, Gateway, Origin, eventually, in_time, settled, until};
use crate::websocket_http2::{accept, accepting, announced, connect, opened, send_all};
use crate::websocket_http2_ends::{LONG, data, next, rest};

/// Sends until there is no more room for a while, and says how much went.
async fn fill(send: &mut h2::SendStream<Bytes>, most: usize) -> usize {
    let part = vec![0; 64 * 1024];
    let mut total = 0;
    while total < most && timeout(Duration::from_secs(2), send_all(send, &part)).await.is_ok_and(|end| end.is_ok()) {
        total += part.len();
    }
    total
}

#[test]
fn an_application_that_does_not_read_holds_back_its_tunnel_alone() {
    const MOST: usize = 64 << 20;
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(Some(gate));
    let origin = accepting(move |mut stream| {
        let gate = gate.lock().expect("no panic here").take();
        if let Some(gate) = gate {
            let _ = gate.recv_timeout(3 * LONG);
        }
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let _ = stream.write_all(format!("got {}", all.len()).as_bytes());
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    // Dropped first: an origin that ends waits for its threads.
    let open = open;
    over_http2(&gateway, async |sender| {
        let (mut receive, mut send) = opened(&sender).await;
        let before = gateway.resident_kib();
        let total = fill(&mut send, MOST).await;
        assert!(total < MOST / 2, "{total}");
        let took = gateway.resident_kib().saturating_sub(before);
        assert!(took < 8 * 1024, "{took} KiB");
        let (mut other, mut ends) = opened(&sender).await;
        ends.send_data(data("12"), true).expect("a stream");
        assert_eq!(rest(&mut other).await.expect("its end"), "got 2");
        open.send(()).expect("the application waits");
        send.send_data(Bytes::new(), true).expect("a stream");
        let got: usize = rest(&mut receive).await.expect("its end")["got ".len()..].parse().expect("a number");
        assert!(got >= total, "{got} of {total}");
    });
}

#[test]
fn many_small_messages_for_an_application_that_is_busy_do_not_end_the_connection() {
    const COUNT: usize = 10_000;
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let origin = Origin::scripted(move |mut exchange| {
        let Some(received) = exchange.request() else { return };
        let _ = held.lock().expect("no panic here").recv_timeout(3 * LONG);
        accept(&mut exchange, &received);
        let mut stream = exchange.into_stream();
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let _ = stream.write_all(format!("got {}", all.len()).as_bytes());
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        announced(&sender).await;
        let mut tunnels = Vec::new();
        for _ in 0..3 {
            let (answer, mut send) =
                announced(&sender).await.send_request(connect("http://a/", "websocket"), false).expect("sent");
            for _ in 0..COUNT {
                send.send_data(data("x"), false).expect("a stream");
            }
            send.send_data(Bytes::new(), true).expect("a stream");
            tunnels.push(answer);
        }
        until("all ask", || origin.count() == 3).await;
        drop(release);
        for answer in tunnels {
            let mut receive = timeout(LONG, answer).await.expect("an answer").expect("a connection").into_body();
            assert_eq!(rest(&mut receive).await.expect("its end"), format!("got {COUNT}"));
        }
    });
}

#[test]
fn a_client_that_does_not_read_holds_back_the_application_and_no_other_stream() {
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let talking = accepting(move |mut stream| {
        while stream.write_all(&[7; 16 * 1024]).is_ok() {
            counter.fetch_add(16 * 1024, Ordering::SeqCst);
        }
    });
    let origin = Origin::answering(|_| Answer::ok("other"));
    let gateway =
        Gateway::start(format!("upstream: {}\nroutes: [{{match: /live, upstream: {}}}]", origin.url(), talking.url()));
    Background::start().block_on(in_time("the conversation ends", async {
        let stream = tokio::net::TcpStream::connect(gateway.address()).await.expect("a connection");
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(20_000).initial_connection_window_size(1 << 20);
        let (sender, connection): (SendRequest<Bytes>, _) = builder.handshake(stream).await.expect("HTTP/2 is spoken");
        tokio::spawn(connection);
        let (mut receive, mut send) = opened(&sender).await;
        let before = gateway.resident_kib();
        until("the application begins", || written.load(Ordering::SeqCst) > 0).await;
        settled(10, Duration::from_millis(50), || written.load(Ordering::SeqCst));
        let took = gateway.resident_kib().saturating_sub(before);
        assert!(took < 8 * 1024, "{took} KiB");
        let other = Request::get("http://a/").body(()).expect("a request");
        assert_eq!(ask(&sender, other, None).await.expect("an answer").status, 200);
        let held = written.load(Ordering::SeqCst);
        for _ in 0..1000 {
            next(&mut receive).await.expect("more").expect("a stream");
        }
        eventually("the application goes on", || written.load(Ordering::SeqCst) > held);
        send.send_reset(Reason::CANCEL);
    }));
    eventually("the tunnel is over", || gateway.stdout().len() == 2);
}
