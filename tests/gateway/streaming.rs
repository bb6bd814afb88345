//! Bodies are streamed: large ones arrive whole, and slow ones delay no other client and fill no memory.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::small_frames::settled;
use crate::support::{Gateway, Origin, digest, eventually};

const LARGE: usize = 64 << 20;

/// Bytes in which no block is like another.
fn pattern(length: usize) -> Vec<u8> {
    let words = (0..=length as u64 / 8).flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    words.take(length).collect()
}

#[test]
fn a_large_upload_arrives_whole_within_little_memory() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let before = gateway.resident_kib();
    let body = pattern(LARGE);
    assert_eq!(gateway.post("/").body("application/octet-stream", &body).status(), 200);
    let received = origin.last();
    assert_eq!((received.body_length, received.body_digest), (LARGE as u64, digest(&body)));
    let grown = gateway.resident_kib().saturating_sub(before);
    assert!(grown < LARGE as u64 / 1024 / 4, "{grown} KiB more");
}

#[test]
fn chunks_that_are_signed_arrive_whole() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let signature = format!(";chunk-signature={}", "0f".repeat(32));
    for (size, count) in [(8 << 10, 1000), (64 << 10, 200)] {
        let chunk = format!("{size:x}{signature}\r\n{}\r\n", "x".repeat(size));
        let mut client = gateway.connect();
        client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(chunk.repeat(count)).send(format!("0{signature}\r\n\r\n"));
        assert_eq!(client.response().status, 200, "{count} chunks of {size} bytes");
        assert_eq!(origin.last().body_length, (size * count) as u64);
        assert_eq!(origin.last().body_digest, digest(&vec![b'x'; size * count]));
    }
}

#[test]
fn a_large_download_arrives_whole_within_little_memory() {
    let body = Arc::new(pattern(LARGE));
    let origin = Origin::scripted({
        let body = Arc::clone(&body);
        move |mut exchange| {
            exchange.request();
            exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
            exchange.write(&*body);
        }
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let before = gateway.resident_kib();
    let response = gateway.get("/").send();
    assert!(response.whole);
    assert_eq!((response.body_length, response.body_digest), (LARGE as u64, digest(&body)));
    let grown = gateway.resident_kib().saturating_sub(before);
    assert!(grown < LARGE as u64 / 1024 / 4, "{grown} KiB more");
}

#[test]
fn the_first_bytes_of_an_answer_do_not_wait_for_the_last() {
    let origin = Origin::scripted(|mut exchange| {
        exchange.request();
        exchange.write(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n5\r\nfirst\r\n",
        );
        // The rest is sent only after the client has answered the first part.
        if exchange.request().is_some() {
            exchange.write("4\r\nlast\r\n0\r\n\r\n");
        }
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    assert!(client.head().starts_with("HTTP/1.1 200 "));
    let first = client.some();
    assert!(String::from_utf8_lossy(&first).contains("first"));
}

#[test]
fn the_first_bytes_of_an_upload_do_not_wait_for_the_last() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nfirst");
    eventually("the first half is upstream", || origin.bytes().ends_with("first"));
    client.send("last!");
    assert_eq!(client.response().status, 200);
    assert_eq!(origin.last().text(), "firstlast!");
}

/// What a connection may cost when it is busy, in KiB.
pub(crate) const BUSY: u64 = 128;

/// The same with the longest heads that are allowed.
const BUSY_WITH_LONG_HEADS: u64 = 160;

/// KiB that each of a hundred connections more takes, once all of them are held up.
pub(crate) fn kib_for_each<C>(gateway: &Gateway, mut connect: impl FnMut() -> C) -> u64 {
    let mut clients: Vec<C> = (0..20).map(|_| connect()).collect();
    let before = settled(gateway);
    clients.extend((0..100).map(|_| connect()));
    settled(gateway).saturating_sub(before) / 100
}

#[test]
fn clients_that_do_not_read_hold_up_the_application_and_fill_no_memory() {
    let written = Arc::new(AtomicUsize::new(0));
    let origin = Origin::scripted({
        let written = Arc::clone(&written);
        move |mut exchange| {
            exchange.request();
            exchange.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
            let block = vec![b'x'; 64 * 1024];
            for _ in 0..LARGE / block.len() {
                if !exchange.write(&block) {
                    return;
                }
                written.fetch_add(block.len(), Ordering::SeqCst);
            }
        }
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let each = kib_for_each(&gateway, || {
        let mut client = gateway.connect();
        client.send(gateway.get("/").bytes());
        client.head();
        client
    });
    assert!(each <= BUSY, "{each} KiB");
    assert!(written.load(Ordering::SeqCst) < 120 * LARGE / 2, "everything was read ahead");
}

#[test]
fn long_heads_that_clients_do_not_read_fill_no_memory_either() {
    let origin = Origin::scripted(|mut exchange| {
        exchange.request();
        exchange.write(format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: {LARGE}\r\n\r\n", "y".repeat(99 << 10)));
        let block = vec![b'x'; 64 * 1024];
        while exchange.write(&block) {}
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let each = kib_for_each(&gateway, || {
        let mut stream = gateway.connect().into_stream();
        socket2::SockRef::from(&stream).set_recv_buffer_size(4096).expect("a socket");
        stream.write_all(&gateway.get("/").bytes()).expect("sent");
        stream
    });
    assert!(each <= BUSY_WITH_LONG_HEADS, "{each} KiB");
}

#[test]
fn applications_that_do_not_read_hold_up_their_clients_and_fill_no_memory() {
    let origin = Origin::scripted(|mut exchange| {
        exchange.head();
        exchange.pause(Duration::from_secs(30));
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let block = vec![b'x'; 8 << 20];
    let each = kib_for_each(&gateway, || {
        let mut client = gateway.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n"));
        client.send_until_full(&block);
        client
    });
    assert!(each <= BUSY, "{each} KiB");
}

/// Begins an answer that never ends, continues it now and then if wanted, and counts the clients that leave.
fn endless(left: &Arc<AtomicUsize>, goes_on: bool) -> Origin {
    let left = Arc::clone(left);
    Origin::scripted(move |mut exchange| {
        exchange.request();
        exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        while goes_on && exchange.write("5\r\nhello\r\n") {
            exchange.pause(Duration::from_millis(50));
        }
        if goes_on || exchange.client_has_left() {
            left.fetch_add(1, Ordering::SeqCst);
        }
    })
}

#[test]
fn a_client_that_leaves_a_download_frees_the_connection_upstream() {
    let left = Arc::new(AtomicUsize::new(0));
    let origin = endless(&left, false);
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    client.head();
    client.abort();
    eventually("the origin is left too", || left.load(Ordering::SeqCst) == 1);
}

#[test]
fn a_client_that_only_closes_its_side_is_found_to_have_left_when_more_comes() {
    let left = Arc::new(AtomicUsize::new(0));
    let origin = endless(&left, true);
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut client = gateway.connect();
    client.send(gateway.get("/").bytes());
    client.head();
    client.finish();
    drop(client);
    eventually("the origin is left too", || left.load(Ordering::SeqCst) == 1);
}
