//! Tunnels in HTTP/2 streams: their bounds, how each side ends them, and what a client cannot do with them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request};
use tokio::time::timeout;

use crate::http2::{ask, over_http2};
use crate::support::{Gateway, Origin, Stopwatch, eventually, until};
use crate::websocket_http2::{accepting, announced, asked, connect, opened};

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// An application behind whose 101 bytes come back, and how many of its tunnels have ended.
fn echoing() -> (Origin, Arc<AtomicUsize>) {
    let ended = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ended);
    let origin = accepting(move |mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        counter.fetch_add(1, Ordering::SeqCst);
    });
    (origin, ended)
}

/// One that reads to the end and then says how much came.
fn counting() -> Origin {
    accepting(|mut stream| {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let _ = stream.write_all(format!("got {}", all.len()).as_bytes());
    })
}

pub(crate) async fn next(receive: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    let data = timeout(LONG, receive.data()).await.expect("something comes, or the end");
    if let Some(Ok(data)) = &data {
        receive.flow_control().release_capacity(data.len()).expect("a stream");
    }
    data
}

/// All that comes, to the end of the stream.
pub(crate) async fn rest(receive: &mut RecvStream) -> Result<String, h2::Error> {
    let mut all = Vec::new();
    while let Some(data) = next(receive).await {
        all.extend_from_slice(&data?);
    }
    Ok(String::from_utf8(all).expect("text"))
}

pub(crate) fn data(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn what_comes_before_the_answer_and_empty_frames_reach_the_application_in_order() {
    let (origin, _) = echoing();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let (answer, mut send) =
            announced(&sender).await.send_request(connect("http://a/", "websocket"), false).expect("sent");
        for part in ["one ", "", "two ", ""] {
            send.send_data(data(part), false).expect("a stream");
        }
        let mut receive = answer.await.expect("an answer").into_body();
        for part in ["", "three"] {
            send.send_data(data(part), false).expect("a stream");
        }
        send.send_data(Bytes::new(), true).expect("a stream");
        assert_eq!(rest(&mut receive).await.expect("its end"), "one two three");
    });
}

#[test]
fn each_side_may_end_its_half_first() {
    let (told, hears) = mpsc::channel();
    let told = Mutex::new(told);
    let origin = accepting(move |mut stream| {
        stream.write_all(b"all I have").expect("a tunnel");
        stream.shutdown(Shutdown::Write).expect("a socket");
        let mut all = String::new();
        stream.read_to_string(&mut all).expect("text until its end");
        told.lock().expect("no panic here").send(all).expect("the test listens");
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let (mut receive, mut send) = opened(&sender).await;
        assert_eq!(rest(&mut receive).await.expect("its end"), "all I have");
        send.send_data(data("and I"), true).expect("the other half is open");
        until("the request is over", || !gateway.stdout().is_empty()).await;
    });
    assert_eq!(hears.recv_timeout(LONG).expect("the application ends"), "and I");
    let origin = counting();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let (mut receive, mut send) = opened(&sender).await;
        send.send_data(data("12345"), true).expect("a stream");
        assert_eq!(rest(&mut receive).await.expect("its end"), "got 5");
        // The head ends the stream.
        let (answer, _) = announced(&sender).await.send_request(connect("http://a/", "websocket"), true).expect("sent");
        assert_eq!(rest(answer.await.expect("an answer").body_mut()).await.expect("its end"), "got 0");
    });
}

#[test]
fn a_stream_given_up_ends_the_application_s_connection_though_the_client_had_said_all() {
    let (origin, ended) = echoing();
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let silent = accepting(move |mut stream| {
        // The end of what the client says is not the end of this one.
        let _ = stream.read_to_end(&mut Vec::new());
        let _ = held.lock().expect("no panic here").recv_timeout(3 * LONG);
    });
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes: [{{match: /silent, upstream: {}}}]\nlimits: [{{key: client_ip, concurrent: 1}}]",
        origin.url(),
        silent.url()
    ));
    over_http2(&gateway, async |sender| {
        let (_receive, mut send) = opened(&sender).await;
        send.send_reset(Reason::CANCEL);
        until("the tunnel ends", || ended.load(Ordering::SeqCst) == 1).await;
        until("its place is free again", || gateway.stdout().len() == 1).await;
        let (answer, mut send) =
            announced(&sender).await.send_request(connect("http://a/silent", "websocket"), true).expect("sent");
        assert_eq!(answer.await.expect("an answer").status(), 200);
        assert_eq!(asked(&sender).await.0.status(), 429, "its place is taken");
        send.send_reset(Reason::CANCEL);
        until("the tunnel is over", || gateway.stdout().iter().any(|line| line.contains("/silent"))).await;
        let _tunnel = opened(&sender).await;
    });
    drop(release);
}

#[test]
fn streams_given_up_at_once_leave_nothing_behind() {
    let (origin, _) = echoing();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", gateway.pid())).expect("a process").count();
    over_http2(&gateway, async |sender| {
        drop(opened(&sender).await);
        until("one is over", || gateway.stdout().len() == 1).await;
        let before = descriptors();
        for number in 0..60 {
            let (answer, mut send) =
                announced(&sender).await.send_request(connect("http://a/", "websocket"), false).expect("sent");
            // Not read yet, on its way to the application, answered.
            match number % 3 {
                0 => {}
                1 => until("it arrives", || origin.count() > number / 3).await,
                _ => drop(answer.await.expect("an answer")),
            }
            send.send_reset(Reason::CANCEL);
        }
        until("nothing of them is left", || descriptors() <= before).await;
        let (mut receive, mut send) = opened(&sender).await;
        send.send_data(data("still here"), true).expect("a stream");
        assert_eq!(rest(&mut receive).await.expect("its end"), "still here");
    });
}

#[test]
fn trailers_and_lengths_have_no_place_in_a_tunnel() {
    let (origin, ended) = echoing();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let (mut receive, mut send) = opened(&sender).await;
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "1".parse().expect("a value"));
        send.send_trailers(trailers).expect("a stream");
        assert_eq!(rest(&mut receive).await.expect_err("no end").reason(), Some(Reason::PROTOCOL_ERROR));
        until("the application's end", || ended.load(Ordering::SeqCst) == 1).await;
        let mut request = connect("http://a/", "websocket");
        request.headers_mut().insert("content-length", "0".parse().expect("a value"));
        let (answer, _send) = announced(&sender).await.send_request(request, false).expect("sent");
        assert_eq!(answer.await.expect("an answer").status(), 400);
    });
    assert_eq!(origin.count(), 1);
}

#[test]
fn what_is_no_websocket_is_501_and_plain_connect_stays_405() {
    let (origin, _) = echoing();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let sender = announced(&sender).await;
        for protocol in ["connect-udp", "h2c", ""] {
            let answered = ask(&sender, connect("http://a/", protocol), None).await.expect("an answer");
            assert_eq!(answered.status, 501, "{protocol}");
        }
        let plain = Request::connect("a:80").body(()).expect("a request");
        assert_eq!(ask(&sender, plain, None).await.expect("an answer").status, 405);
        let _tunnel = opened(&sender).await;
    });
    assert_eq!(origin.count(), 1);
}

#[test]
fn rules_see_the_get_that_the_application_sees() {
    let (origin, _) = echoing();
    let gateway = Gateway::start(format!(
        "upstream: {}\nroutes:\n  - match: GET /live\n    limits:\n      - {{name: live, key: [client_ip, header.upgrade], rate: 1/hour}}",
        origin.url()
    ));
    over_http2(&gateway, async |sender| {
        let _tunnel = opened(&sender).await;
        assert_eq!(asked(&sender).await.0.status(), 429);
    });
    assert_eq!(origin.count(), 1);
}

#[test]
fn too_many_fields_are_too_many() {
    let (origin, _) = echoing();
    let gateway = Gateway::start(format!("upstream: {}\nserver: {{max_headers: 20}}", origin.url()));
    over_http2(&gateway, async |sender| {
        let mut request = connect("http://a/", "websocket");
        for number in 0..20 {
            let name = http::HeaderName::try_from(format!("x-{number}")).expect("a name");
            request.headers_mut().insert(name, "1".parse().expect("a value"));
        }
        assert_eq!(ask(&announced(&sender).await, request, None).await.expect("an answer").status, 431);
    });
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_tunnel_holds_its_place_as_long_as_it_stands() {
    let (origin, _) = echoing();
    let gateway = Gateway::start(format!("upstream: {}\nlimits: [{{key: client_ip, concurrent: 1}}]", origin.url()));
    over_http2(&gateway, async |sender| {
        let (mut receive, mut send) = opened(&sender).await;
        assert_eq!(asked(&sender).await.0.status(), 429);
        send.send_data(Bytes::new(), true).expect("a stream");
        rest(&mut receive).await.expect("its end");
        until("the tunnel is over", || gateway.stdout().len() == 2).await;
        let _tunnel = opened(&sender).await;
    });
}

#[test]
fn a_tunnel_outlives_the_timeouts_of_requests_and_connections() {
    let (origin, _) = echoing();
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], timeouts: {{response: 300ms}}}}\nserver: {{timeouts: {{header: 300ms, keepalive: 300ms, body_idle: 300ms}}}}",
        origin.url()
    ));
    over_http2(&gateway, async |sender| {
        let (mut receive, mut send) = opened(&sender).await;
        tokio::time::sleep(Duration::from_millis(1200)).await;
        send.send_data(data("still there"), true).expect("a stream");
        assert_eq!(rest(&mut receive).await.expect("its end"), "still there");
    });
}

#[test]
fn a_tunnel_goes_on_while_the_gateway_drains_and_is_cut_when_that_is_over() {
    const DRAIN: Duration = Duration::from_secs(2);
    let (origin, ended) = echoing();
    let mut gateway = Gateway::start(format!("upstream: {}\nserver: {{timeouts: {{drain: 2s}}}}", origin.url()));
    let address = gateway.address();
    let waited = over_http2(&gateway, async |sender| {
        let (mut receive, mut send) = opened(&sender).await;
        let waited = Stopwatch::start();
        gateway.signal("TERM");
        until("no new connection is taken", || TcpStream::connect(address).is_err()).await;
        send.send_data(data("still there"), false).expect("a stream");
        assert_eq!(next(&mut receive).await.expect("an echo").expect("a stream"), "still there");
        assert!(next(&mut receive).await.is_none_or(|end| end.is_err()));
        waited.elapsed()
    });
    assert!(waited >= DRAIN, "{waited:?}");
    gateway.ended();
    eventually("the application is told", || ended.load(Ordering::SeqCst) == 1);
}

#[test]
fn a_client_that_ends_its_connection_ends_its_tunnels() {
    let (origin, ended) = echoing();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let _tunnels = [opened(&sender).await, opened(&sender).await];
    });
    eventually("both end", || ended.load(Ordering::SeqCst) == 2);
    eventually("both are told of", || gateway.stdout().len() == 2);
}
