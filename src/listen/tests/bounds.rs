use super::*;

#[tokio::test]
async fn beyond_max_connections_new_ones_wait_for_one_to_close() {
    let server = Server::start(ConnectionSettings { max_connections: 2, ..settings() });
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
    let server = Server::start(ConnectionSettings { max_connections: 1, ..settings() });
    let mut first = server.connect().await;
    first.get("/").await;
    let mut second = server.connect().await;
    second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(second.is_silent(SHORT).await);

    server.settings.store(Arc::new(ConnectionSettings { max_connections: 2, ..settings() }));

    assert!(second.answer().await.starts_with("HTTP/1.1 200"));
}
