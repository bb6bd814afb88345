use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame};
use tokio::sync::mpsc;

use super::origin::HELLO;
use super::*;

/// A body whose parts a test hands out.
struct Parts(mpsc::Receiver<&'static str>);

impl Body for Parts {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|part| part.map(|part| Ok(Frame::data(part.into()))))
    }
}

fn upload() -> (mpsc::Sender<&'static str>, TestRequest) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, request(Method::POST, "").with_body(Parts(receiver).boxed()))
}

#[tokio::test]
async fn the_time_a_client_takes_to_send_its_body_is_not_the_servers() {
    let origin = Origin::start(|_, mut peer| async move {
        while peer.request().await.is_some() {
            let mut seen = String::new();
            while !seen.ends_with("0\r\n\r\n") {
                let mut byte = [0];
                tokio::io::AsyncReadExt::read_exact(&mut peer.stream, &mut byte).await.unwrap();
                seen.push(char::from(byte[0]));
            }
            peer.send(HELLO).await;
        }
    })
    .await;
    let upstream = Upstream::new(UpstreamSettings { timeouts: timeouts(SHORT, LONG), ..settings(&[&origin]) });
    let (parts, request) = upload();
    tokio::spawn(async move {
        for _ in 0..4 {
            tokio::time::sleep(SHORT).await;
            parts.send("part").await.unwrap();
        }
    });

    assert_eq!(text(send(&Pool::new(), &upstream, request).await.unwrap()).await, "hello");
}

#[tokio::test]
async fn once_the_body_is_sent_the_clock_runs() {
    let origin = Origin::start(|_, mut peer| async move { peer.closed().await }).await;
    let upstream = Upstream::new(UpstreamSettings { timeouts: timeouts(SHORT, LONG), ..settings(&[&origin]) });
    let (parts, request) = upload();
    parts.send("part").await.unwrap();
    drop(parts);

    let error = send(&Pool::new(), &upstream, request).await.unwrap_err();

    assert_eq!(error.label(), "response_timeout");
}

#[tokio::test]
async fn a_server_that_does_not_read_a_body_is_504() {
    let origin = Origin::start(|_, peer| async move {
        tokio::time::sleep(LONG).await;
        drop(peer);
    })
    .await;
    let upstream = Upstream::new(UpstreamSettings { timeouts: timeouts(SHORT, LONG), ..settings(&[&origin]) });
    let (parts, request) = upload();
    let big: &'static str = "x".repeat(1024 * 1024).leak();
    tokio::spawn(async move { while parts.send(big).await.is_ok() {} });

    let error = send(&Pool::new(), &upstream, request).await.unwrap_err();

    assert_eq!((error.status().as_u16(), error.label()), (504, "response_timeout"));
}

#[tokio::test]
async fn an_answer_that_stops_half_way_breaks_off() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await;
        peer.closed().await;
    })
    .await;
    let upstream = Upstream::new(UpstreamSettings { timeouts: timeouts(SHORT, LONG), ..settings(&[&origin]) });
    let mut body = send(&Pool::new(), &upstream, get()).await.unwrap().body;

    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "hello");
    assert!(matches!(body.frame().await, Some(Err(BodyError::Stalled))));
    assert_eq!(upstream.servers()[0].in_flight(), 0);
    drop(body);
    eventually(|| origin.closed() == 1).await;
}

#[tokio::test]
async fn the_time_a_client_takes_to_read_is_not_the_servers() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await;
        tokio::time::sleep(SHORT).await;
        peer.send("hello").await;
    })
    .await;
    let upstream = Upstream::new(UpstreamSettings { timeouts: timeouts(SHORT, LONG), ..settings(&[&origin]) });
    let mut body = send(&Pool::new(), &upstream, get()).await.unwrap().body;
    body.frame().await.unwrap().unwrap();

    tokio::time::sleep(SHORT * 3).await;

    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "hello");
}

#[tokio::test]
async fn a_body_is_sent_to_its_end_though_the_early_answer_is_not_read() {
    const LENGTH: usize = 4 * 1024 * 1024;
    let received = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = Arc::clone(&received);
    let origin = Origin::start(move |_, mut peer| {
        let counter = Arc::clone(&counter);
        async move {
            peer.request().await;
            peer.send(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\nearly", 4 * LENGTH)).await;
            let mut part = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = tokio::io::AsyncReadExt::read(&mut peer.stream, &mut part).await {
                counter.fetch_add(length, Ordering::SeqCst);
            }
        }
    })
    .await;
    let upstream = Upstream::new(settings(&[&origin]));
    let (parts, request) = upload();

    let mut body = send(&Pool::new(), &upstream, request).await.unwrap().body;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "early");
    let part: &'static str = "x".repeat(LENGTH / 16).leak();
    for _ in 0..16 {
        parts.send(part).await.unwrap();
    }

    eventually(|| received.load(Ordering::SeqCst) > LENGTH).await;
    // Dropping the answer stops the rest of the body.
    drop(body);
    parts.closed().await;
    eventually(|| origin.closed() == 1).await;
}

#[tokio::test]
async fn after_an_early_answer_the_rest_of_the_body_is_still_sent() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.request().await;
        peer.send(HELLO).await;
        let mut rest = String::new();
        while !rest.ends_with("0\r\n\r\n") {
            let mut byte = [0];
            tokio::io::AsyncReadExt::read_exact(&mut peer.stream, &mut byte).await.unwrap();
            rest.push(char::from(byte[0]));
        }
    })
    .await;
    let upstream = Upstream::new(settings(&[&origin]));
    let (parts, request) = upload();

    assert_eq!(text(send(&Pool::new(), &upstream, request).await.unwrap()).await, "hello");
    for _ in 0..3 {
        parts.send("part").await.unwrap();
    }
    drop(parts);

    eventually(|| origin.closed() == 1).await;
}

#[tokio::test]
async fn what_is_left_of_a_body_is_not_kept_for_a_server_that_does_not_take_it() {
    let origin = Origin::start(|_, mut peer| async move {
        peer.request().await;
        peer.send(HELLO).await;
        tokio::time::sleep(LONG).await;
    })
    .await;
    let upstream = Upstream::new(UpstreamSettings { timeouts: timeouts(SHORT, LONG), ..settings(&[&origin]) });
    let (parts, request) = upload();

    assert_eq!(text(send(&Pool::new(), &upstream, request).await.unwrap()).await, "hello");
    let big: &'static str = "x".repeat(1024 * 1024).leak();
    let given_up = async { while parts.send(big).await.is_ok() {} };
    tokio::time::timeout(LONG, given_up).await.expect("the body should be given up");
}
