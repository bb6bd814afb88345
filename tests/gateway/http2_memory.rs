//! The memory of one HTTP/2 connection is bounded, whatever its streams leave unfinished. Clients that finish their
//! requests do not notice the bound.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{Request, StatusCode};
use tokio::task::JoinSet;

use crate::http2::{ask, over_http2};
use crate::http2_abuse::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, POST, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
    field, frame, get, head, read_frame, stream,
};
use crate::memory::reader;
use crate::small_frames::settled;
use crate::support::{Answer, Gateway, Origin};

/// What one connection may take, in KiB: that includes some 16 KiB for each stream in a build for debugging.
const EACH: u64 = 7 * 1024;

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
        let mut under_way = vec![begin(first).await];
        for _ in 1..CONNECTIONS {
            under_way.push(begin(connect(gateway).await).await);
        }
        // The connections are carried by this thread.
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        drop(under_way);
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

/// A client that reads nothing for now, and has little room for what it does not read.
fn asking(gateway: &Gateway, requests: impl Fn(u32) -> Vec<u8>) -> TcpStream {
    let mut socket = reader(gateway.address());
    // As much room on each stream, and on all, as an answer may need.
    let window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0x10, 0, 0]);
    let all = frame(WINDOW_UPDATE, 0, 0, &[0x3f, 0, 0, 0]);
    let streams = 0..u32::try_from(STREAMS).expect("a few");
    let requests: Vec<u8> = streams.flat_map(|n| requests(stream(n))).collect();
    socket.write_all(&[PREFACE, &window, &all, &requests].concat()).expect("the gateway listens");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout above zero");
    socket
}

/// What each connection takes while its answers are not read, all of which come once they are.
#[track_caller]
fn check_unread(name: &str, answer: Answer) {
    let origin = Origin::answering(move |_| answer.clone());
    let gateway = Gateway::start(format!("upstream: {}\nlog: {{requests: false}}", origin.url()));
    assert_eq!(gateway.get("/").status(), 200);
    let before = settled(&gateway);
    let mut clients: Vec<TcpStream> = (0..CONNECTIONS).map(|_| asking(&gateway, get)).collect();
    settled(&gateway);
    let each = gateway.peak_kib().saturating_sub(before) / CONNECTIONS;
    for client in &mut clients {
        let mut ended = 0;
        while ended < STREAMS {
            match read_frame(client) {
                (HEADERS | DATA, flags, ..) if flags & END_STREAM != 0 => ended += 1,
                (GOAWAY | RST_STREAM, ..) => panic!("{name}: an answer does not come"),
                _ => {}
            }
        }
    }
    assert!(each <= EACH, "{name}: {each} KiB for each connection");
}

#[test]
fn heads_of_answers_that_are_not_read_share_a_bound() {
    let long = "x".repeat(8000);
    check_unread("heads", Answer::new(200, &[("X-Long", long.as_str()); 11], b""));
}

#[test]
fn bodies_of_answers_that_are_not_read_share_a_bound() {
    check_unread("bodies", Answer::ok(vec![b'x'; 200 << 10]));
}

#[test]
fn heads_of_requests_that_are_under_way_share_a_bound() {
    let origin = Origin::start();
    let gateway = looking_into_forms(&origin);
    (0..8).for_each(|_| assert_eq!(gateway.get("/").status(), 200));
    let before = settled(&gateway);
    let kind = field(b"content-type", b"application/x-www-form-urlencoded");
    // A field of 60,000 bytes.
    let long = [&[0, 1, b'x', 0x7f, 0xe1, 0xd3, 0x03][..], &vec![b'x'; 60_000]].concat();
    let block = [&head(POST)[..], &kind, &long].concat();
    let (first, rest) = block.split_at(16_000);
    let begin = |on| {
        let mut frames = frame(HEADERS, 0, on, first);
        for piece in rest.chunks(16_000) {
            let flags = if piece.len() < 16_000 { END_HEADERS } else { 0 };
            frames.extend(frame(CONTINUATION, flags, on, piece));
        }
        frames
    };
    let mut clients: Vec<TcpStream> = (0..CONNECTIONS).map(|_| asking(&gateway, begin)).collect();
    settled(&gateway);
    let each = gateway.peak_kib().saturating_sub(before) / CONNECTIONS;
    assert!(each <= EACH, "{each} KiB for each connection");
    for client in &mut clients {
        // Few are kept, and a short one fits beside them.
        client.write_all(&get(2001)).expect("the connection stands");
        let mut refused = 0;
        loop {
            match read_frame(client) {
                (RST_STREAM, _, _, reason) => {
                    assert_eq!(reason, [0, 0, 0, 7], "REFUSED_STREAM");
                    refused += 1;
                }
                (HEADERS, _, 2001, head) => break assert_eq!(head[0], 0x88, "200"),
                (GOAWAY, ..) => panic!("the connection ended"),
                _ => {}
            }
        }
        assert!((60..70).contains(&refused), "{refused} of {STREAMS}");
    }
}

/// What an answer means is looked for in its body: in a large part of it, so that what is kept of it stands out.
fn looking_into_answers(origin: &Origin) -> Gateway {
    Gateway::start(format!(
        "upstream: {}
log: {{requests: false}}
server: {{inspect_body: 256KiB}}
routes:
  - match: /
    outcome: {{failure: {{body: invalid}}}}
    limits:
      - {{name: failures, key: client_ip, count: failures, rate: 100000/hour}}",
        origin.url()
    ))
}

const PAGE: usize = 256 * 1024;

#[test]
fn answers_that_are_looked_into_all_come_however_many_do_at_once() {
    let origin = Origin::answering(|_| Answer::ok(vec![b'x'; PAGE - 1]).after(Duration::from_millis(200)));
    let gateway = looking_into_answers(&origin);
    over_http2(&gateway, async |sender| all_are_answered(&sender, 120, 200, true).await);
    assert_eq!(origin.count(), 120);
}
