use super::*;

#[tokio::test]
async fn a_connection_carries_one_request_after_the_other() {
    let server = Server::start(settings());
    let mut client = server.connect().await;

    for _ in 0..3 {
        assert!(client.get("/").await.ends_with("hello\r\n0\r\n\r\n"));
    }

    assert_eq!(server.connections.count(), 1);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(settings());
    let mut client = server.connect().await;

    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n12GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;

    assert!(client.answer().await.contains("\r\n12\r\n"));
    assert!(client.answer().await.contains("hello"));
}

#[tokio::test]
async fn a_head_may_arrive_byte_by_byte() {
    let server = Server::start(settings());
    let mut client = server.connect().await;

    for byte in b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n" {
        client.send([*byte]).await;
    }

    assert!(client.answer().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_method_that_begins_like_the_http2_preface_is_http1() {
    let server = Server::start(settings());
    for method in ["PUT", "PRI", "PROPFIND"] {
        let mut client = server.connect().await;
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert!(client.answer().await.starts_with("HTTP/1.1 200"), "{method}");
    }
}

async fn check_malformed(head: &'static str, status: u16) {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send(head).await;
    let rest = client.rest().await;
    let begin = &head[..head.len().min(80)];
    assert!(rest.starts_with(&format!("HTTP/1.1 {status} ")), "{begin:?}: {rest:?}");
    assert_eq!(server.app.started.load(Ordering::SeqCst), 0, "{begin:?}");
    assert_eq!(*server.app.malformed.lock(), [StatusCode::from_u16(status).unwrap()], "{begin:?}");
}

#[tokio::test]
async fn a_malformed_head_is_answered_and_its_connection_closed() {
    check_malformed("GET\r\n\r\n", 400).await;
    check_malformed("GET / HTTP/1.1\r\nHo st: a\r\n\r\n", 400).await;
    check_malformed("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505).await;
    check_malformed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12", 400).await;
    check_malformed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: cow\r\n\r\n", 400).await;
}

#[tokio::test]
async fn a_bare_line_feed_in_a_head_is_400() {
    check_malformed("GET / HTTP/1.1\nHost: a\n\n", 400).await;
    check_malformed("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400).await;
    check_malformed("GET / HTTP/1.1\r\nHost: a\r\n\n", 400).await;
}

#[tokio::test]
async fn a_bare_line_feed_in_the_head_of_a_later_request_is_400() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.get("/").await;

    client.send("GET / HTTP/1.1\r\nHost: a\n\r\n").await;

    assert!(client.rest().await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn line_feeds_in_a_body_are_left_alone() {
    let server = Server::start(settings());
    let mut client = server.connect().await;

    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n").await;
    client.send("1\n\n2").await;

    assert!(client.answer().await.contains("\r\n1\n\n2\r\n"));
}

#[tokio::test]
async fn a_head_beyond_its_bounds_is_431() {
    let long: &'static str = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(16 * 1024)).leak();
    check_malformed(long, 431).await;
    let many: &'static str = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(100)).leak();
    check_malformed(many, 431).await;
}

#[tokio::test]
async fn the_number_of_headers_is_bounded_as_configured() {
    let server = Server::start(Settings { max_headers: 3, ..settings() });
    let mut client = server.connect().await;

    client.send("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n\r\n").await;
    assert!(client.answer().await.starts_with("HTTP/1.1 200"));
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\nX: 3\r\n\r\n").await;
    assert!(client.rest().await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn a_length_beside_chunked_is_dropped_and_the_connection_closed_after_the_answer() {
    for (first, second) in
        [("Content-Length: 3", "Transfer-Encoding: chunked"), ("Transfer-Encoding: chunked", "Content-Length: 3")]
    {
        let server = Server::start(settings());
        let mut client = server.connect().await;
        client.send(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{first}\r\n{second}\r\n\r\n2\r\nhi\r\n0\r\n\r\n")).await;
        let rest = client.rest().await;
        assert!(rest.starts_with("HTTP/1.1 200") && rest.contains("\r\n2\r\nhi\r\n0\r\n\r\n"), "{rest}");
        assert!(rest.contains("connection: close"), "{rest}");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_side_is_still_answered() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.stream.shutdown().await.unwrap();
    // The response may take any time.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    server.app.gate.add_permits(1);

    assert!(client.rest().await.contains("waited"));
    server.connections.drain().await;
}

#[tokio::test]
async fn a_request_whose_client_has_left_is_dropped() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually(|| server.app.started.load(Ordering::SeqCst) > 0).await;
    client.reset();

    eventually(|| server.app.dropped.load(Ordering::SeqCst) > 0).await;
}

#[tokio::test]
async fn a_client_that_closed_its_side_and_leaves_is_noticed() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.stream.shutdown().await.unwrap();
    eventually(|| server.app.started.load(Ordering::SeqCst) > 0).await;
    assert!(client.is_silent(SHORT).await);
    client.reset();

    eventually(|| server.app.dropped.load(Ordering::SeqCst) > 0).await;
}

#[tokio::test]
async fn half_a_request_behind_which_the_client_closes_its_side_is_not_awaited() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send("POST /aside HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").await;
    client.stream.shutdown().await.unwrap();
    client.closed().await;
}

#[tokio::test]
async fn a_client_gets_the_whole_response_though_its_request_was_not_read() {
    let server = Server::start(settings());
    let mut client = server.connect().await;

    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n").await;
    // A server that closed here, with unread bytes, would reset the connection, and the response would be lost.
    for _ in 0..20 {
        client.send(&vec![0; 64 * 1024]).await;
    }

    let answer = client.answer().await;
    assert!(answer.contains("hello") && answer.contains("connection: close"), "{answer}");
    client.closed().await;
}

#[tokio::test]
async fn an_unread_body_that_has_arrived_whole_leaves_the_connection_open() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    for framed in ["Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"] {
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framed}")).await;
        assert!(!client.answer().await.contains("connection: close"));
    }
    assert!(client.get("/").await.contains("hello"));
}

#[tokio::test]
async fn a_client_that_waits_for_it_is_asked_for_its_body_ahead_of_the_answer() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    let mut asked = [0; 25];
    client.stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hi").await;
    assert!(client.answer().await.contains("\r\n2\r\nhi\r\n"));

    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    assert!(client.rest().await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_body_read_aside_ends_with_its_connection_and_not_before() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send("POST /aside HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    assert!(client.is_silent(SHORT).await);
    assert_eq!(server.app.broken_off.load(Ordering::SeqCst), 0);

    server.connections.cut();

    client.closed().await;
    eventually(|| server.app.broken_off.load(Ordering::SeqCst) == 1).await;
    eventually(|| server.connections.count() == 0).await;
}

#[tokio::test]
async fn a_request_behind_a_body_that_another_task_reads_is_answered_after_it() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send("POST /aside HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    server.app.gate.add_permits(1);
    assert!(client.answer().await.contains("aside"));
    client.send("whole").await;
    assert!(client.get("/").await.contains("hello"));
}

#[tokio::test]
async fn a_panic_ends_one_request_and_its_connection() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    let mut other = server.connect().await;
    client.send("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.closed().await;

    assert!(other.get("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_counts_as_a_connection() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.send("GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    assert!(client.answer().await.starts_with("HTTP/1.1 101"));

    client.send("ping\npong").await;
    let mut echoed = [0; 9];
    client.stream.read_exact(&mut echoed).await.unwrap();

    assert_eq!(&echoed, b"ping\npong");
    assert_eq!(server.connections.count(), 1);
    client.stream.shutdown().await.unwrap();
    client.closed().await;
    server.connections.drain().await;
}
