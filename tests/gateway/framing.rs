//! The gateway forwards exactly one unambiguous request. It refuses anything else, and no byte of it reaches the
//! origin.

use std::time::Duration;

use crate::support::Answer;
use crate::support::Gateway;
use crate::support::Origin;
use crate::support::RawClient;
use crate::support::eventually;

/// Sends these bytes; the client is refused with one of these statuses, the connection ends, the origin saw nothing.
#[track_caller]
fn refused(gateway: &Gateway, origin: &Origin, bytes: impl AsRef<[u8]>, statuses: &[u16]) {
    let bytes = bytes.as_ref();
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    let before = origin.bytes();
    let mut client = RawClient::connect(gateway.address());
    client.send(bytes);
    let response = client.try_response("GET").unwrap_or_else(|| panic!("no answer to {shown:?}"));
    assert!(statuses.contains(&response.status), "{} to {shown:?}", response.status);
    let rest = client.rest();
    assert!(rest.is_empty(), "after the refusal of {shown:?}: {:?}", String::from_utf8_lossy(&rest));
    assert_eq!(origin.bytes(), before, "{shown:?}");
}

fn started() -> (Origin, Gateway) {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nserver: {{max_body: 1KiB, max_header_bytes: 16KiB, max_headers: 50}}",
        origin.url()
    ));
    (origin, gateway)
}

#[test]
fn a_host_that_is_not_exactly_one_is_refused() {
    let (origin, gateway) = started();
    for hosts in [
        "",
        "Host: a\r\nHost: b\r\n",
        "Host: a\r\nHost: a\r\n",
        "Host: a, b\r\n",
        "Host: a,b\r\n",
        "Host: a b\r\n",
        "Host: a/b\r\n",
        "Host: a?b\r\n",
        "Host: user@a\r\n",
        "Host: a:65536\r\n",
        "Host: a:99999999999\r\n",
        "Host: a:port\r\n",
        "Host: a:1:2\r\n",
        "Host: a\u{e9}\r\n",
        "Host: [::1\r\n",
    ] {
        refused(&gateway, &origin, format!("GET / HTTP/1.1\r\n{hosts}\r\n"), &[400]);
    }
}

#[test]
fn an_odd_transfer_encoding_is_refused() {
    let (origin, gateway) = started();
    for coding in [
        "Transfer-Encoding: cow, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: ,chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\r\n : chunked\r\n",
    ] {
        let bytes = format!("POST / HTTP/1.1\r\nHost: a\r\n{coding}\r\n5\r\nhello\r\n0\r\n\r\n");
        refused(&gateway, &origin, bytes, &[400, 501]);
    }
    let old = "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    refused(&gateway, &origin, old, &[400, 501]);
}

#[test]
fn an_odd_length_is_refused() {
    let (origin, gateway) = started();
    for length in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: five\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length : 5\r\n",
    ] {
        let bytes = format!("POST / HTTP/1.1\r\nHost: a\r\n{length}\r\nhello");
        refused(&gateway, &origin, bytes, &[400, 413]);
    }
}

#[test]
fn two_framings_are_refused_or_the_length_is_dropped_and_the_connection_closed() {
    let (origin, gateway) = started();
    for order in
        ["Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"]
    {
        let before = origin.count();
        let mut client = gateway.connect();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\n{order}\r\n5\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
        ));
        let response = client.response();
        assert!(client.rest().is_empty(), "the connection closes after the answer");
        match response.status {
            200 => {
                let received = origin.last();
                assert_eq!(received.header("content-length"), None);
                assert_eq!(received.text(), "hello");
                assert_eq!(origin.count(), before + 1);
            }
            status => {
                assert_eq!(status, 400);
                assert_eq!(origin.count(), before);
            }
        }
    }
}

#[test]
fn a_head_that_is_not_http_is_refused() {
    let (origin, gateway) = started();
    for head in [
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: nameless\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /?q=\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET login HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.2x\r\nHost: a\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
    ] {
        refused(&gateway, &origin, head, &[400, 505]);
    }
}

#[test]
fn a_version_that_is_not_spoken_is_refused() {
    let (origin, gateway) = started();
    for version in ["HTTP/2.0", "HTTP/3.0", "HTTP/0.9"] {
        refused(&gateway, &origin, format!("GET / {version}\r\nHost: a\r\n\r\n"), &[505]);
    }
}

#[test]
fn heads_beyond_their_bounds_are_refused() {
    let (origin, gateway) = started();
    let many = "X: y\r\n".repeat(60);
    refused(&gateway, &origin, format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), &[431]);
    let long = "x".repeat(20_000);
    refused(&gateway, &origin, format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"), &[431]);
    refused(&gateway, &origin, format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), &[414]);
}

#[test]
fn a_body_beyond_its_bound_is_refused() {
    let (origin, gateway) = started();
    refused(&gateway, &origin, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1025\r\n\r\n", &[413]);
    assert_eq!(gateway.post("/").body("text/plain", "x".repeat(1024)).status(), 200);
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(format!("800\r\n{}\r\n0\r\n\r\n", "x".repeat(2048)));
    assert_eq!(client.response().status, 413);
    eventually("the upstream request is cut", || origin.heads().len() == origin.requests().len());
    assert!(origin.requests().iter().all(|received| received.body_length <= 1024));
}

#[test]
fn connect_and_trace_are_refused() {
    let (origin, gateway) = started();
    for head in [
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let before = origin.count();
        let mut client = gateway.connect();
        client.send(head);
        assert!(matches!(client.response_to("GET").status, 400 | 405 | 501), "{head}");
        assert_eq!(origin.count(), before);
    }
}

#[test]
fn an_upgrade_to_http2_is_never_forwarded() {
    let (origin, gateway) = started();
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n");
    let response = client.response();
    assert_ne!(response.status, 101);
    if let Some(received) = origin.requests().last() {
        assert_eq!(received.header("upgrade"), None);
        assert_eq!(received.header("http2-settings"), None);
    }
}

#[test]
fn the_authority_of_an_absolute_target_is_the_host() {
    let (origin, gateway) = started();
    let mut client = gateway.connect();
    client.send("GET http://App.example:8080/x?y HTTP/1.1\r\nHost: App.example:8080\r\n\r\n");
    assert_eq!(client.response().status, 200);
    let received = origin.last();
    assert_eq!(received.target, "/x?y");
    assert_eq!(received.headers.all("host").len(), 1);
    assert!(received.header("host").expect("one").eq_ignore_ascii_case("app.example:8080"));
    let mut client = gateway.connect();
    client.send("GET http://inner.example/x HTTP/1.1\r\nHost: outer.example\r\n\r\n");
    match client.response().status {
        200 => assert_eq!(origin.last().header("host"), Some("inner.example")),
        status => assert_eq!(status, 400),
    }
}

#[test]
fn a_malformed_chunk_is_400_and_never_a_whole_request_upstream() {
    let (origin, gateway) = started();
    for broken in [
        "5\r\nhelloXX",
        "zz\r\n",
        "-1\r\n",
        "5 5\r\n",
        "5\nhello\n0\n\n",
        "0x5\r\nhello\r\n",
        "fffffffffffffffff\r\n",
        "0\r\n\n\r\n\r\n",
    ] {
        let mut client = gateway.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n{broken}"));
        assert_eq!(client.response().status, 400, "{broken:?}");
        assert!(client.ends_within(Duration::from_secs(5)), "{broken:?}");
    }
    eventually("every upstream request has ended", || origin.heads().len() == origin.requests().len());
    assert!(origin.requests().iter().all(|received| !received.whole));
}

#[test]
fn chunks_that_are_signed_arrive_whole_and_padded_ones_are_refused() {
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
    }
    for size in ["1 ", "1\t", "1;", "1 ;a", "1;a=", "1;a b", "1;\ra", "1;\u{7f}"] {
        let mut client = gateway.connect();
        client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\nx\r\n0\r\n\r\n"));
        assert_eq!(client.response().status, 400, "{size:?}");
        assert!(client.ends_within(Duration::from_secs(5)), "{size:?}");
    }
}

#[test]
fn a_request_cut_short_is_never_whole_upstream() {
    let (origin, gateway) = started();
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
    eventually("the head is upstream", || origin.count() == 1);
    drop(client);
    eventually("the upstream request has ended", || origin.requests().len() == 1);
    assert!(!origin.last().whole);
}

#[test]
fn what_is_forwarded_is_written_anew() {
    let (origin, gateway) = started();
    let mut client = gateway.connect();
    client.send("GET /a?b HTTP/1.1\r\nhOsT:   app.example  \r\nX-One:\t two \r\nACCEPT:*/*\r\n\r\n");
    assert_eq!(client.response().status, 200);
    let received = origin.last();
    assert!(received.head.starts_with("GET /a?b HTTP/1.1\r\n"), "{}", received.head);
    assert_eq!(received.header("host"), Some("app.example"));
    assert_eq!(received.header("x-one"), Some("two"));
    let lines: Vec<&str> = received.head.split("\r\n").collect();
    assert!(lines.iter().all(|line| !line.contains(['\r', '\n'])), "{}", received.head);
}

#[test]
fn an_answer_of_one_client_never_reaches_another() {
    let origin = Origin::answering(|received| Answer::ok(format!("for {}", received.target)));
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let gateway = &gateway;
            scope.spawn(move || {
                let mut client = gateway.connect();
                for number in 0..100 {
                    let target = format!("/{thread}/{number}");
                    assert_eq!(gateway.get(&target).send_on(&mut client).text(), format!("for {target}"));
                    // Every seventh leaves while its answer is on the way.
                    if number % 7 == 0 {
                        client.send(gateway.get("/left").bytes());
                        client = gateway.connect();
                    }
                }
            });
        }
    });
}
