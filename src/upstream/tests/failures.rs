use http::StatusCode;
use http::uri::Authority;

use super::origin::HELLO;
use super::*;
use crate::upstream::error::FailureCause;

#[track_caller]
fn check(result: Result<UpstreamResponse, ForwardError>, status: u16, label: &str) -> ForwardError {
    let error = result.unwrap_err();
    assert_eq!((error.status().as_u16(), error.label()), (status, label), "{error}");
    error
}

/// Dies on the first request that comes on a connection used before, as an application does that closes it just then.
async fn dying_when_reused() -> Origin {
    Origin::start(|number, mut peer| async move {
        peer.request().await;
        peer.send(HELLO).await;
        let again = peer.request().await;
        if number == 0 {
            peer.reset();
        } else if again.is_some() {
            peer.send(HELLO).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_get_on_a_connection_that_dies_is_sent_once_more() {
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        let origin = dying_when_reused().await;
        let upstream = Upstream::new(settings(&[&origin]));
        let pool = Pool::new();
        text(send(&pool, &upstream, get()).await.unwrap()).await;

        let answer = send(&pool, &upstream, request(method.clone(), "")).await.unwrap();

        assert_eq!(answer.head.status, 200, "{method}");
        assert_eq!(origin.accepted(), 2, "{method}");
    }
}

#[tokio::test]
async fn what_may_have_had_an_effect_is_never_sent_again() {
    for (method, body) in [
        (Method::POST, ""),
        (Method::POST, "x"),
        (Method::PATCH, ""),
        (Method::PUT, "x"),
        (Method::DELETE, ""),
        (Method::GET, "x"),
    ] {
        let origin = dying_when_reused().await;
        let upstream = Upstream::new(settings(&[&origin]));
        let pool = Pool::new();
        text(send(&pool, &upstream, get()).await.unwrap()).await;

        let error = check(send(&pool, &upstream, request(method, body)).await, 502, "closed");

        assert_eq!(error.server.as_deref(), Some(&**upstream.servers()[0].name()));
        assert_eq!(origin.accepted(), 1);
    }
}

#[tokio::test]
async fn a_get_is_sent_once_more_to_another_server_if_there_is_one() {
    let dying = Origin::start(|_, mut peer| async move {
        peer.request().await;
    })
    .await;
    let well = Origin::answering(HELLO).await;
    let upstream = Upstream::new(settings(&[&dying, &well]));

    let answer = send(&Pool::new(), &upstream, get()).await.unwrap();

    assert_eq!(answer.server, *upstream.servers()[1].name());
    assert_eq!(dying.accepted(), 1);
}

#[tokio::test]
async fn a_post_goes_on_a_new_connection_when_the_server_has_closed_the_kept_one() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.request().await;
        peer.send(HELLO).await;
    })
    .await;
    let upstream = Upstream::new(settings(&[&origin]));
    let pool = Pool::new();
    for round in 1..=20 {
        // Whether the end was seen before the request was handed over, or after, nothing of it was written.
        let answer = send(&pool, &upstream, request(Method::POST, "body")).await;
        assert_eq!(text(answer.unwrap()).await, "hello");
        eventually(|| origin.closed() == round).await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_accept_is_504() {
    // A full accept queue leaves further connections unanswered.
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) = tokio::time::timeout(SHORT, tokio::net::TcpStream::connect(address)).await {
        filling.push(stream);
    }
    let upstream = Upstream::new(UpstreamSettings {
        servers: vec![address.to_string().parse::<Authority>().unwrap().into()],
        timeouts: Timeouts { connect: SHORT, response: LONG, idle: LONG },
        ..settings(&[])
    });

    check(send(&Pool::new(), &upstream, get()).await, 504, "connect_timeout");
}

#[tokio::test]
async fn the_response_timeout_holds_on_a_connection_used_before() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.request().await;
        peer.send(HELLO).await;
        peer.closed().await;
    })
    .await;
    let upstream = Upstream::new(UpstreamSettings { timeouts: timeouts(SHORT, LONG), ..settings(&[&origin]) });
    let pool = Pool::new();
    text(send(&pool, &upstream, get()).await.unwrap()).await;
    tokio::time::sleep(SHORT * 2).await;

    let started = tokio::time::Instant::now();
    check(send(&pool, &upstream, get()).await, 504, "response_timeout");

    assert!(started.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_request_body_that_breaks_off_is_the_clients_fault_and_cuts_the_upstream_connection() {
    let origin = Origin::start(|_, mut peer| async move { peer.closed().await }).await;
    let upstream = Upstream::new(settings(&[&origin]));
    let body = http_body_util::StreamBody::new(futures_util::stream::iter([
        Ok(http_body::Frame::data(Bytes::from("half"))),
        Err(io::Error::other("a malformed chunk")),
    ]));
    let mut request = request(Method::POST, "").with_body(BodyExt::boxed(body));
    request.head.fields.append(KnownName::CONTENT_LENGTH, b"8");

    let error = check(send(&Pool::new(), &upstream, request).await, 400, "request_body");

    assert_eq!(error.to_string(), "the request's body broke off: a malformed chunk");
    eventually(|| origin.closed() == 1).await;
}

#[tokio::test]
async fn a_name_is_looked_up_and_one_that_is_unknown_is_502() {
    let origin = Origin::answering(HELLO).await;
    let name = format!("localhost:{}", origin.address().port());
    let upstream =
        Upstream::new(UpstreamSettings { servers: vec![name.parse::<Authority>().unwrap().into()], ..settings(&[]) });
    assert_eq!(send(&Pool::new(), &upstream, get()).await.unwrap().head.status, StatusCode::OK);

    let upstream = Upstream::new(UpstreamSettings {
        servers: vec!["no-such-host.invalid:1".parse::<Authority>().unwrap().into()],
        ..settings(&[])
    });
    check(send(&Pool::new(), &upstream, get()).await, 502, "connect");
}

#[tokio::test]
async fn a_server_that_takes_requests_and_answers_none_is_passed_over() {
    let dying = Origin::start(|_, mut peer| async move {
        peer.request().await;
    })
    .await;
    let well = Origin::answering(HELLO).await;
    let upstream = Upstream::new(settings(&[&dying, &well]));
    let name = |index: usize| Arc::clone(upstream.servers()[index].name());
    let pool = Pool::new();
    let mut unanswered = 0;
    for _ in 0..40 {
        match send(&pool, &upstream, request(Method::POST, "body")).await {
            Ok(answer) => assert_eq!(answer.server, name(1)),
            Err(_) => unanswered += 1,
        }
        if unanswered < 3 {
            assert!(upstream.is_well(&name(0)));
        }
    }
    // More only where a second has passed meanwhile: one request finds out whether it answers again.
    assert!((3..13).contains(&unanswered), "{unanswered}");
    assert!(upstream.is_well(&name(1)));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_again_is_served_again() {
    let upstream = Upstream::new(settings(&[&Origin::down().await]));
    let server = &upstream.servers()[0];
    (0..2).for_each(|_| server.note_unanswered(&FailureCause::ResponseTimeout));
    server.note_answered();
    (0..2).for_each(|_| server.note_unanswered(&FailureCause::ResponseTimeout));
    assert!(!server.backs_off() && upstream.is_well(server.name()));
    server.note_unanswered(&FailureCause::ResponseTimeout);
    assert!(server.backs_off() && !upstream.is_well(server.name()));
    server.note_answered();
    assert!(!server.backs_off() && upstream.is_well(server.name()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_failed_is_not_well_until_it_has_answered() {
    let upstream = Upstream::new(settings(&[&Origin::down().await]));
    let server = &upstream.servers()[0];
    server.note_not_connected(&FailureCause::ConnectTimeout);
    assert!(!upstream.is_well(server.name()));
    // No request has gone there since.
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert!(!server.backs_off() && !upstream.is_well(server.name()));
    // Somebody listens there, and may not answer.
    server.note_connected();
    assert!(!upstream.is_well(server.name()));
    server.note_answered();
    assert!(upstream.is_well(server.name()));
}

#[tokio::test]
async fn servers_that_were_passed_over_are_named_with_the_cause() {
    let (down, dying) = (
        Origin::down().await,
        Origin::start(|_, mut peer| async move {
            peer.request().await;
        })
        .await,
    );
    let well = Origin::answering(HELLO).await;
    let upstream = Upstream::new(settings(&[&down, &dying, &well]));
    let name = |index: usize| Arc::clone(upstream.servers()[index].name());

    let answer = send(&Pool::new(), &upstream, get()).await.unwrap();

    assert_eq!(answer.server, name(2));
    assert_eq!(answer.previous_attempts, [(name(0), "connect"), (name(1), "closed")]);
    let upstream = Upstream::new(settings(&[&down]));
    assert!(check(send(&Pool::new(), &upstream, get()).await, 502, "connect").previous_attempts.is_empty());
}
