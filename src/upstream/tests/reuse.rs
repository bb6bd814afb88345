use super::origin::HELLO;
use super::*;

#[tokio::test]
async fn an_answer_without_a_body_gives_its_connection_back_at_once() {
    let origin = Origin::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let upstream = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();

    let first = send(&pool, &upstream, get()).await.unwrap();
    let _second = send(&pool, &upstream, get()).await.unwrap();

    assert_eq!(origin.accepted(), 1);
    assert_eq!(upstream.servers()[0].in_flight(), 0);
    drop(first);
}

#[tokio::test]
async fn a_chunked_answer_with_trailers_gives_its_connection_back() {
    let origin = Origin::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n",
    )
    .await;
    let upstream = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();

    for _ in 0..3 {
        let answer = send(&pool, &upstream, get()).await.unwrap();
        let body = answer.body.collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["x-sum"], "1");
    }

    assert_eq!(origin.accepted(), 1);
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own() {
    let origin = Origin::answering(HELLO).await;
    let upstream = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();

    let first = send(&pool, &upstream, get()).await.unwrap();
    let second = send(&pool, &upstream, get()).await.unwrap();
    assert_eq!(upstream.servers()[0].in_flight(), 2);
    assert_eq!(text(first).await + &text(second).await, "hellohello");
    assert_eq!(upstream.servers()[0].in_flight(), 0);

    assert_eq!(origin.accepted(), 2);
}

#[tokio::test]
async fn a_request_given_up_closes_its_connection() {
    let origin = Origin::start(|_, mut peer| async move { peer.closed().await }).await;
    let upstream = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();

    assert!(tokio::time::timeout(SHORT, send(&pool, &upstream, get())).await.is_err());

    eventually(|| origin.closed() == 1).await;
    assert_eq!(upstream.servers()[0].in_flight(), 0);
}

#[tokio::test]
async fn a_server_that_says_close_gets_a_new_connection() {
    let origin = Origin::answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello").await;
    let upstream = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();

    for _ in 0..3 {
        assert_eq!(text(send(&pool, &upstream, get()).await.unwrap()).await, "hello");
    }

    assert_eq!(origin.accepted(), 3);
}

#[tokio::test]
async fn an_idle_connection_is_closed_by_the_idle_timeout() {
    let origin = Origin::answering(HELLO).await;
    let upstream = Upstream::new(UpstreamSettings { timeouts: timeouts(LONG, SHORT), ..settings(&[&origin]) });
    let pool = Pool::new();
    text(send(&pool, &upstream, get()).await.unwrap()).await;
    assert_eq!(origin.closed(), 0);

    eventually(|| origin.closed() == 1).await;

    text(send(&pool, &upstream, get()).await.unwrap()).await;
    eventually(|| origin.closed() == 2).await;
}

#[tokio::test]
async fn a_reload_keeps_what_did_not_change() {
    let origin = Origin::answering(HELLO).await;
    let other = Origin::answering(HELLO).await;
    let old = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();
    text(send(&pool, &old, get()).await.unwrap()).await;

    let same = Upstream::carry_over(settings(&[&origin]), &[Arc::clone(&old)]);
    let grown = Upstream::carry_over(settings(&[&origin, &other]), &[Arc::clone(&old)]);

    assert!(Arc::ptr_eq(&old, &same));
    assert!(Arc::ptr_eq(&old.servers()[0], &grown.servers()[0]));
    text(send(&pool, &same, get()).await.unwrap()).await;
    assert_eq!(origin.accepted(), 1);
}

#[tokio::test]
async fn a_tunnel_is_opened_by_the_servers_101_and_counts_while_it_is_kept() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nwelcome").await;
        peer.closed().await;
    })
    .await;
    let upstream = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();
    let mut request = get();
    request.head.fields.append(KnownName::CONNECTION, b"upgrade");
    request.head.fields.append(KnownName::UPGRADE, b"echo");

    let answer = send(&pool, &upstream, request).await.unwrap();
    assert_eq!(answer.head.status, 101);
    let mut tunnel = answer.body.into_tunnel().unwrap();

    let mut greeting = [0; 7];
    tokio::io::AsyncReadExt::read_exact(&mut tunnel, &mut greeting).await.unwrap();
    assert_eq!(&greeting, b"welcome");
    assert_eq!(upstream.servers()[0].in_flight(), 1);
    drop(tunnel);
    assert_eq!(upstream.servers()[0].in_flight(), 0);
}

/// Sends `count` requests at once, each with a connection of its own, and then gives back all connections.
async fn wave(pool: &Pool, upstream: &Arc<Upstream>, count: usize) {
    let mut answers = Vec::new();
    for _ in 0..count {
        answers.push(send(pool, upstream, get()).await.unwrap());
    }
    for answer in answers {
        assert_eq!(text(answer).await, "hello");
    }
}

#[tokio::test]
async fn as_many_connections_are_kept_as_were_in_use_and_those_of_a_burst_are_closed_soon() {
    let origin = Origin::answering(HELLO).await;
    let upstream = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();
    for _ in 0..3 {
        wave(&pool, &upstream, 400).await;
    }
    assert_eq!((origin.accepted(), origin.closed()), (400, 0));
    eventually(|| origin.closed() == 400 - 256).await;
    wave(&pool, &upstream, 256).await;
    assert_eq!((origin.accepted(), origin.closed()), (400, 400 - 256));
}

#[tokio::test]
async fn a_bound_of_idle_connections_holds_for_all_cores_together() {
    let origin = Origin::answering(HELLO).await;
    let upstream = Upstream::new(UpstreamSettings { max_idle: Some(3), ..settings(&[&origin]) });
    let pools = [Pool::new(), Pool::new()];
    for pool in &pools {
        wave(pool, &upstream, 2).await;
    }
    eventually(|| origin.closed() == 1).await;
    assert_eq!(origin.accepted(), 4);
    wave(&pools[0], &upstream, 2).await;
    wave(&pools[1], &upstream, 2).await;
    assert_eq!(origin.accepted(), 5);
    let none = Upstream::new(UpstreamSettings { max_idle: Some(0), ..settings(&[&origin]) });
    wave(&pools[0], &none, 2).await;
    eventually(|| origin.closed() == 4).await;
}
