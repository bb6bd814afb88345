use super::*;

#[tokio::test]
async fn a_method_that_begins_like_the_http2_preface_is_http1() {
    let server = Server::start(settings());
    for method in ["PUT", "PRI", "PROPFIND"] {
        let mut client = server.connect().await;
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert!(client.answer().await.starts_with("HTTP/1.1 200"), "{method}");
    }
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
