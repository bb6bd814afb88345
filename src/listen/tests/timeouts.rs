use std::io;

use super::*;

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
async fn half_a_head_on_a_used_connection_is_closed_by_the_header_timeout() {
    let server = Server::start(ConnectionSettings { header: SHORT, ..settings() });
    for rests in [true, false] {
        let mut client = server.connect().await;
        client.get("/").await;
        if rests {
            assert!(client.is_silent(RESTED).await);
        }
        client.send("GET").await;
        client.closed().await;
    }
}

/// Longer than any header timeout of these tests.
const RESTED: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_request_under_way_is_under_no_timeout_of_the_connection() {
    let server = Server::start(ConnectionSettings { header: SHORT, keepalive: SHORT, body_idle: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.is_silent(SHORT * 3).await);
    server.app.gate.add_permits(1);
    assert!(client.answer().await.contains("waited"));
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_closed() {
    let server = Server::start(ConnectionSettings { body_idle: SHORT, ..settings() });
    let mut client = server.connect().await;
    client.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually(|| server.app.started.load(Ordering::SeqCst) > 0).await;
    eventually(|| server.connections.count() == 0).await;
    // Unsent data is dropped: the client finds the end at once, not behind megabytes.
    let end = client.stream.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
}
