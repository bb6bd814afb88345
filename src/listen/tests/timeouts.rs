use std::io;

use super::*;

#[tokio::test]
async fn a_silent_connection_is_closed_by_the_header_timeout() {
    let server = Server::start(Settings { header: SHORT, ..settings() });
    server.connect().await.closed().await;
}

#[tokio::test]
async fn half_a_head_is_closed_by_the_header_timeout() {
    let server = Server::start(Settings { header: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("GET / HTTP/1.1\r\nHost").await;
    client.closed().await;
}

#[tokio::test]
async fn a_head_that_trickles_is_closed_by_the_header_timeout() {
    let server = Server::start(Settings { header: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("GET / HTTP/1.1\r\nX: ").await;
    let started = Duration::ZERO;
    let mut sent = started;
    while client.is_silent(SHORT / 10).await {
        let _ = client.stream.try_write(b"x");
        sent += SHORT / 10;
        assert!(sent < LONG, "still open");
    }
}

#[tokio::test]
async fn half_a_later_head_is_closed_by_the_header_timeout() {
    let server = Server::start(Settings { header: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.get("/").await;
    client.send("GET").await;
    client.closed().await;
}

#[tokio::test]
async fn half_a_preface_is_closed_by_the_header_timeout() {
    let server = Server::start(Settings { header: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("PRI * HTTP/2.0\r\n\r\nSM").await;
    client.closed().await;
}

#[tokio::test]
async fn a_connection_between_requests_is_closed_by_the_keepalive_timeout_and_not_before() {
    let server = Server::start(Settings { header: SHORT / 4, keepalive: SHORT, ..settings() });
    let mut client = server.connect().await;
    for _ in 0..4 {
        client.get("/").await;
        assert!(client.is_silent(SHORT / 2).await);
    }
    client.closed().await;
}

#[tokio::test]
async fn a_connection_that_has_rested_is_answered_like_any_other() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    for _ in 0..2 {
        client.get("/").await;
        assert!(client.is_silent(RESTED).await);
    }
    client.send("GET / HTTP/1.1\r\n").await;
    assert!(client.is_silent(RESTED).await);
    client.send("Host: a\r\n\r\n").await;
    client.answer().await;
}

#[tokio::test]
async fn a_connection_at_rest_is_closed_by_the_keepalive_timeout_and_not_before() {
    let server = Server::start(Settings { keepalive: RESTED + SHORT, ..settings() });
    let mut client = server.connect().await;
    client.get("/").await;
    assert!(client.is_silent(RESTED).await);
    client.closed().await;
}

#[tokio::test]
async fn a_connection_at_rest_is_closed_when_connections_are_drained() {
    let server = Server::start(settings());
    let mut client = server.connect().await;
    client.get("/").await;
    assert!(client.is_silent(RESTED).await);
    let drained = tokio::spawn({
        let connections = server.connections.clone();
        async move { connections.drain().await }
    });
    client.closed().await;
    drained.await.expect("no panic");
}

#[tokio::test]
async fn half_a_head_on_a_connection_at_rest_is_closed_by_the_header_timeout() {
    let server = Server::start(Settings { header: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.get("/").await;
    assert!(client.is_silent(RESTED).await);
    client.send("GET").await;
    client.closed().await;
}

/// Longer than any header timeout of these tests.
const RESTED: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_request_under_way_is_under_no_timeout_of_the_connection() {
    let server = Server::start(Settings { header: SHORT, keepalive: SHORT, body_idle: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.is_silent(SHORT * 3).await);
    server.app.gate.add_permits(1);
    assert!(client.answer().await.contains("waited"));
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_closed() {
    let server = Server::start(Settings { body_idle: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually(|| server.app.started.load(Ordering::SeqCst) > 0).await;
    eventually(|| server.connections.count() == 0).await;
    // Unsent data is dropped: the client finds the end at once, not behind megabytes.
    let end = client.stream.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_reads_slowly_but_steadily_is_served() {
    let server = Server::start(Settings { body_idle: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut chunk = vec![0; 512 * 1024];
    for _ in 0..10 {
        client.stream.read_exact(&mut chunk).await.unwrap();
        tokio::time::sleep(SHORT / 4).await;
    }
}

#[tokio::test]
async fn a_client_is_served_however_little_it_reads_at_a_time() {
    let server = Server::start(Settings { body_idle: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut chunk = vec![0; 64 * 1024];
    for _ in 0..30 {
        client.stream.read_exact(&mut chunk).await.unwrap();
        tokio::time::sleep(SHORT / 10).await;
    }
    assert_eq!(server.connections.count(), 1);
}
