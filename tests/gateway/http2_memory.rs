//! What one HTTP/2 connection takes in memory, however many streams it has and whatever they leave unfinished; and that
//! those who finish what they begin do not notice.

use std::time::Duration;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::client::SendRequest;
use http::Request;
use http::StatusCode;
use tokio::task::JoinSet;

use crate::http2::ask;
use crate::http2::over_http2;
use crate::small_frames::settled;
use crate::support::Gateway;
use crate::support::Origin;

/// What one connection may take, in KiB: that includes some 16 KiB for each stream in a build for debugging.
const EACH: u64 = 6 * 1024;

/// Connections that do the same, so that what one takes stands out.
const CONNECTIONS: u64 = 4;

/// As many as a connection may have at a time, but for some that others are to use.
const STREAMS: usize = 100;

/// As much of a body as is looked into.
const LENGTH: usize = 64 * 1024;

/// Every form is looked into.
fn looking_into_forms(origin: &Origin) -> Gateway {
    Gateway::start(format!(
        "upstream: {}\nlog: {{requests: false}}\nlimits:\n  - {{name: user, key: param.user, rate: 100000/hour}}",
        origin.url()
    ))
}

/// What each connection has taken at the most, in KiB, once all of them have begun something.
fn kib_each<T>(gateway: &Gateway, mut begin: impl AsyncFnMut(SendRequest<Bytes>) -> T) -> u64 {
    (0..8).for_each(|_| assert_eq!(gateway.get("/").status(), 200));
    let before = settled(gateway);
    over_http2(gateway, async |first| {
        let mut begun = vec![begin(first).await];
        for _ in 1..CONNECTIONS {
            begun.push(begin(connect(gateway).await).await);
        }
        // The connections are carried by this thread.
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        drop(begun);
    });
    gateway.peak_kib().saturating_sub(before) / CONNECTIONS
}

async fn connect(gateway: &Gateway) -> SendRequest<Bytes> {
    let stream = tokio::net::TcpStream::connect(gateway.address()).await.expect("the gateway accepts connections");
    let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2 is spoken");
    tokio::spawn(connection);
    sender
}

/// A form that says how long it is, or does not.
fn form(length: Option<usize>) -> Request<()> {
    let request = Request::post("http://a/login").header("content-type", "application/x-www-form-urlencoded");
    let request = match length {
        Some(length) => request.header("content-length", length),
        None => request,
    };
    request.body(()).expect("a request")
}

fn text(length: usize) -> Bytes {
    format!("user=alice&pad={}", "x".repeat(length - 15)).into()
}

/// Opens streams whose bodies have all but their last byte, as far as the gateway lets them.
async fn half_send(sender: &SendRequest<Bytes>, streams: usize) -> Vec<(ResponseFuture, h2::SendStream<Bytes>)> {
    let mut open = Vec::new();
    for _ in 0..streams {
        let mut sender = sender.clone().ready().await.expect("the connection stands");
        let (answer, mut upload) = sender.send_request(form(None), false).expect("a stream");
        upload.send_data(text(LENGTH - 1), false).expect("the stream stands");
        open.push((answer, upload));
    }
    open
}

#[test]
fn half_sent_bodies_on_many_streams_share_a_bound() {
    let origin = Origin::start();
    let gateway = looking_into_forms(&origin);
    let each = kib_each(&gateway, async |sender| (half_send(&sender, STREAMS).await, sender));
    assert!(each <= EACH, "{each} KiB for each connection");
}

#[test]
fn a_small_form_is_answered_beside_many_half_sent_bodies_and_one_that_finds_no_room_is_503() {
    let origin = Origin::start();
    let gateway = looking_into_forms(&origin);
    over_http2(&gateway, async |sender| {
        let mut open = half_send(&sender, STREAMS).await;
        for _ in 0..20 {
            let answered = ask(&sender, form(Some(200)), Some(text(200))).await.expect("an answer");
            assert_eq!(answered.status, StatusCode::OK);
        }
        let (last, _) = open.pop().expect("an open stream");
        assert_eq!(last.await.expect("an answer").status(), StatusCode::SERVICE_UNAVAILABLE);
    });
    assert_eq!(origin.count(), 20, "nothing half-sent is forwarded");
}

/// So many forms at once on one connection: all must be answered.
async fn all_are_answered(sender: &SendRequest<Bytes>, forms: usize, length: usize, is_stated: bool) {
    let mut under_way = JoinSet::new();
    for _ in 0..forms {
        let sender = sender.clone();
        under_way.spawn(async move {
            let request = form(is_stated.then_some(length));
            ask(&sender, request, Some(text(length))).await.expect("an answer").status
        });
    }
    while let Some(status) = under_way.join_next().await {
        assert_eq!(status.expect("no panic"), StatusCode::OK, "{forms} forms of {length} bytes");
    }
}

#[test]
fn forms_that_are_sent_whole_are_all_answered_however_many_come_at_once() {
    let origin = Origin::start();
    let gateway = looking_into_forms(&origin);
    over_http2(&gateway, async |sender| {
        all_are_answered(&sender, 120, 200, true).await;
        all_are_answered(&sender, 120, 200, false).await;
        all_are_answered(&sender, 120, 4000, false).await;
        all_are_answered(&sender, 30, 2 * LENGTH, true).await;
        all_are_answered(&sender, 30, 2 * LENGTH, false).await;
    });
    assert_eq!(origin.count(), 420);
}
