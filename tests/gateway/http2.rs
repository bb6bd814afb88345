//! HTTP/2 with prior knowledge from the client, HTTP/1.1 to the application.

use std::io::Write;
use std::net::SocketAddr;

use bytes::Bytes;
use h2::client;
use h2::client::SendRequest;
use http::{HeaderMap, Request, StatusCode};
use tokio::net::TcpStream;

use crate::forwarding::{cookie_lines, cookies};
use crate::http2_abuse;
use crate::http2_abuse::{HEADERS, SETTINGS, frame, read_frame, speaking};
use crate::support::{Answer, Gateway, Origin, in_time, until};

#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    trailers: Option<HeaderMap>,
}

/// Runs a conversation over one HTTP/2 connection.
pub(crate) fn over_http2<T>(gateway: &Gateway, conversation: impl AsyncFnOnce(SendRequest<Bytes>) -> T) -> T {
    over_http2_at(gateway.address(), conversation)
}

/// The same where the gateway may be another one by then.
pub(crate) fn over_http2_at<T>(address: SocketAddr, conversation: impl AsyncFnOnce(SendRequest<Bytes>) -> T) -> T {
    over_http2_with(&client::Builder::new(), address, conversation)
}

/// The same with a client that is set up so.
fn over_http2_with<T>(
    client: &client::Builder,
    address: SocketAddr,
    conversation: impl AsyncFnOnce(SendRequest<Bytes>) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(in_time("the conversation ends", async {
        let stream = TcpStream::connect(address).await.expect("the gateway accepts connections");
        let (sender, connection) = client.handshake(stream).await.expect("HTTP/2 is spoken");
        tokio::spawn(connection);
        conversation(sender).await
    }))
}

pub(crate) async fn ask(
    sender: &SendRequest<Bytes>,
    request: Request<()>,
    body: Option<Bytes>,
) -> Result<Answered, h2::Error> {
    in_time("the request is answered", exchange(sender, request, body)).await
}

async fn exchange(
    sender: &SendRequest<Bytes>,
    request: Request<()>,
    body: Option<Bytes>,
) -> Result<Answered, h2::Error> {
    let mut sender = sender.clone().ready().await?;
    let (response, mut upload) = sender.send_request(request, body.is_none())?;
    if let Some(body) = body {
        upload.send_data(body, true)?;
    }
    let (head, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    let trailers = stream.trailers().await?;
    Ok(Answered { status: head.status, headers: head.headers, body, trailers })
}

fn get(uri: &str) -> Request<()> {
    Request::get(uri).body(()).expect("a request")
}

#[test]
fn a_request_goes_upstream_as_http1_with_the_authority_as_host() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let answered = over_http2(&gateway, async |sender| {
        ask(&sender, get("http://app.example:8080/a?b=c"), None).await.expect("an answer")
    });
    assert_eq!((answered.status, answered.body.as_slice()), (StatusCode::OK, b"origin".as_slice()));
    assert!(answered.headers.get("connection").is_none());
    let received = origin.last();
    assert!(received.head.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{}", received.head);
    assert_eq!(received.header("host"), Some("app.example:8080"));
    assert_eq!(received.header("x-real-ip"), Some("127.0.0.1"));
}

#[test]
fn an_answer_may_set_many_long_cookies() {
    let origin = Origin::answering(|_| cookies());
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let answered = over_http2(&gateway, async |sender| ask(&sender, get("http://a/"), None).await.expect("an answer"));
    let lines = answered.headers.get_all("set-cookie").iter().map(|line| line.to_str().expect("text"));
    assert!(lines.eq(cookie_lines()));
}

/// Some values come again, some do not, and together they are more than a table holds.
fn fields_of_answer(number: usize) -> [(&'static str, String); 4] {
    [
        ("server", "an application".to_owned()),
        ("vary", "v".repeat(number * 37 % 500)),
        ("x-powered-by", (number % 3).to_string()),
        ("x-own", "o".repeat(number % 2 * 200)),
    ]
}

#[test]
fn answers_are_read_whatever_table_the_client_keeps() {
    let origin = Origin::answering(|received| {
        let number = received.target.trim_start_matches('/').parse().expect("a number");
        let fields = fields_of_answer(number);
        Answer::new(200, &fields.each_ref().map(|(name, value)| (*name, value.as_str())), b"")
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    for size in [0, 100, 4095, 4096, 65_536] {
        over_http2_with(client::Builder::new().header_table_size(size), gateway.address(), async |sender| {
            for number in 0..60 {
                let answered = ask(&sender, get(&format!("http://a/{number}")), None).await.expect("an answer");
                for (name, value) in fields_of_answer(number) {
                    let values: Vec<_> = answered.headers.get_all(name).iter().collect();
                    assert_eq!(values, [value.as_str()], "{name} of answer {number}, with a table of {size} bytes");
                }
            }
        });
    }
}

#[test]
fn a_client_may_give_its_table_up() {
    let origin = Origin::answering(|_| Answer::new(200, &[("server", "an application")], b""));
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let mut socket = speaking(&gateway);
    let mut head_of = |before: &[u8], stream| {
        socket.write_all(&[before, &http2_abuse::get(stream)].concat()).expect("the gateway listens");
        loop {
            if let (HEADERS, _, on, block) = read_frame(&mut socket) {
                assert_eq!(on, stream);
                return block;
            }
        }
    };
    let has_server = |block: &[u8]| memchr::memmem::find(block, b"an application").is_some();
    assert!(has_server(&head_of(b"", 1)));
    assert!(!has_server(&head_of(b"", 3)), "it is in the table by now");
    let settings = frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0]);
    let without_table = head_of(&settings, 5);
    assert_eq!(without_table[0], 0x20, "the table has no size any more");
    assert!(has_server(&without_table) && has_server(&head_of(b"", 7)));
}

#[test]
fn bodies_and_trailers_pass() {
    let origin = Origin::answering(|received| {
        let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n".to_vec();
        answer.extend_from_slice(format!("{:x}\r\n", received.body.len()).as_bytes());
        answer.extend_from_slice(&received.body);
        answer.extend_from_slice(b"\r\n0\r\nX-Sum: 1\r\n\r\n");
        Answer::raw(answer)
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    let body = Bytes::from(vec![b'x'; 60_000]);
    let answered = over_http2(&gateway, async |sender| {
        let request = Request::post("http://a/").header("te", "trailers").body(()).expect("a request");
        ask(&sender, request, Some(body.clone())).await.expect("an answer")
    });
    assert_eq!(answered.body, body);
    assert_eq!(answered.trailers.expect("trailers").get("x-sum").expect("the field"), "1");
}

#[test]
fn a_denial_has_its_fields() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(format!("upstream: {}\nlimits:\n  - {{name: one, key: client_ip, rate: 1/hour}}", origin.url()));
    let denied = over_http2(&gateway, async |sender| {
        ask(&sender, get("http://a/"), None).await.expect("an answer");
        ask(&sender, get("http://a/"), None).await.expect("an answer")
    });
    assert_eq!(denied.status, 429);
    assert_eq!(denied.headers.get("content-type").expect("a type"), "application/problem+json");
    assert!(denied.headers.get("retry-after").is_some());
}

#[test]
fn a_stream_that_is_reset_ends_its_request_upstream_and_no_other() {
    let origin = Origin::scripted(|mut exchange| {
        while let Some(received) = exchange.request() {
            match received.target.as_str() {
                "/slow" => {
                    exchange.client_has_left();
                    return;
                }
                _ => exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            };
        }
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    over_http2(&gateway, async |sender| {
        let mut ready = sender.clone().ready().await.expect("a connection");
        let (_, mut stream) = ready.send_request(get("http://a/slow"), false).expect("a stream");
        until("the application is asked", || origin.count() == 1).await;
        stream.send_reset(h2::Reason::CANCEL);
        let answered = ask(&sender, get("http://a/next"), None).await.expect("an answer");
        assert_eq!(answered.body, b"ok");
    });
}

#[test]
fn a_held_stream_that_is_reset_is_not_forwarded_and_its_neighbours_go_on() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: {}\nlimits:\n  - {{name: slow, key: header.x-key, rate: 1/hour, missing: skip, then: {{delay: 1s}}}}",
        origin.url()
    ));
    over_http2(&gateway, async |sender| {
        let keyed = || Request::get("http://a/held").header("x-key", "1").body(()).expect("a request");
        assert_eq!(ask(&sender, keyed(), None).await.expect("an answer").status, StatusCode::OK);
        let mut opened = sender.clone().ready().await.expect("a connection");
        let (response, mut stream) = opened.send_request(keyed(), true).expect("a stream");
        assert_eq!(ask(&sender, get("http://a/free"), None).await.expect("an answer").status, StatusCode::OK);
        stream.send_reset(h2::Reason::CANCEL);
        drop(response);
        let held = ask(&sender, keyed(), None).await.expect("an answer");
        assert_eq!(held.status, StatusCode::OK);
    });
    let paths: Vec<String> =
        origin.requests().iter().map(|request| request.head.lines().next().expect("a line").to_owned()).collect();
    assert_eq!(paths, ["GET /held HTTP/1.1", "GET /free HTTP/1.1", "GET /held HTTP/1.1"]);
}

#[test]
fn a_cookie_in_a_hundred_and_twenty_crumbs_is_one_field() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!("upstream: {}\nserver: {{max_headers: 10}}", origin.url()));
    let crumbs: Vec<String> = (0..120).map(|number| format!("c{number}={number}")).collect();
    let answered = over_http2(&gateway, async |sender| {
        let mut request = Request::get("http://a/");
        for crumb in &crumbs {
            request = request.header("cookie", crumb);
        }
        ask(&sender, request.body(()).expect("a request"), None).await.expect("an answer")
    });
    assert_eq!(answered.status, 200);
    assert_eq!(origin.last().header("cookie"), Some(crumbs.join("; ").as_str()));
    let many = over_http2(&gateway, async |sender| {
        let mut request = Request::get("http://a/");
        for number in 0..11 {
            request = request.header("x-field", number);
        }
        ask(&sender, request.body(()).expect("a request"), None).await.expect("an answer")
    });
    assert_eq!(many.status, 431);
}
