use super::*;

#[tokio::test]
async fn beyond_max_connections_new_ones_wait_for_one_to_close() {
    let server = Server::start(Settings { max_connections: 2, ..settings() });
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    first.get("/").await;
    second.get("/").await;
    let mut third = server.connect().await;
    third.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(third.is_silent(SHORT).await);

    drop(first);

    assert!(third.answer().await.starts_with("HTTP/1.1 200"));
    assert!(second.get("/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_raised_bound_lets_waiting_connections_in() {
    let server = Server::start(Settings { max_connections: 1, ..settings() });
    let mut first = server.connect().await;
    first.get("/").await;
    let mut second = server.connect().await;
    second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(second.is_silent(SHORT).await);

    server.settings.store(Arc::new(Settings { max_connections: 2, ..settings() }));

    assert!(second.answer().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn beyond_the_bound_per_client_new_connections_are_closed_and_standing_ones_untouched() {
    let server = Server::start(Settings { max_connections_per_client: 1, ..settings() });
    let mut first = server.connect().await;
    first.get("/").await;

    server.connect().await.closed().await;

    assert!(first.get("/").await.starts_with("HTTP/1.1 200"));
    drop(first);
    eventually(|| server.connections.count() == 0).await;
    assert!(server.connect().await.get("/").await.starts_with("HTTP/1.1 200"));
}
