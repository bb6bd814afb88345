//! Callers that send what Envoy never does: each gets a status, others are served, and memory stays bounded.

use std::net::TcpStream;

use envoy_types::pb::envoy::config::core::v3::{HeaderMap, HeaderValue};
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{HttpRequest, Request};
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest, CheckResponse, check_response};
use envoy_types::pb::envoy::service::ext_proc::v3::{
    HttpBody, HttpHeaders, ProcessingRequest, ProcessingResponse, processing_request,
};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use prost::Message;

use crate::call::{Called, Connection, framed};
use crate::support::{Gateway, Stopwatch, eventually};

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
const PROCESS: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

const INVALID_ARGUMENT: u32 = 3;
const DEADLINE_EXCEEDED: u32 = 4;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;

fn gateway() -> Gateway {
    Gateway::start(
        "listen: {address: 127.0.0.1:0, serves: decisions}\nupstream: http://127.0.0.1:1\n\
         server: {timeouts: {body_idle: 500ms}}\nroutes: [{name: d, match: {domain: d}, limits: \
         [{name: one, key: descriptor.user, rate: 1/hour}]}]",
    )
}

#[test]
fn what_is_no_call_is_told_so() {
    let gateway = gateway();
    let connection = Connection::open(gateway.address());
    let compressed = [&[1][..], &[0, 0, 0, 0]].concat();
    let long = [&[0][..], &u32::MAX.to_be_bytes()].concat();
    let twice = [framed(b""), framed(b"")].concat();
    for (method, body, expected) in [
        (CHECK, framed(b"\xff\xff\xff"), INVALID_ARGUMENT),
        (PROCESS, framed(b"\xff\xff\xff"), INVALID_ARGUMENT),
        (SHOULD_RATE_LIMIT, framed(b"\xff\xff\xff"), INVALID_ARGUMENT),
        (SHOULD_RATE_LIMIT, framed(b""), INVALID_ARGUMENT),
        (CHECK, framed(b""), INVALID_ARGUMENT),
        (PROCESS, framed(b""), INVALID_ARGUMENT),
        (CHECK, Vec::new(), INVALID_ARGUMENT),
        (CHECK, b"\0\0".to_vec(), INVALID_ARGUMENT),
        (CHECK, twice, INVALID_ARGUMENT),
        (CHECK, compressed, INVALID_ARGUMENT),
        (CHECK, long, RESOURCE_EXHAUSTED),
    ] {
        let Called { http_status, status, message, .. } = connection.call(method, &body);
        assert_eq!((http_status, status), (Some(200), Some(expected)), "{method} {body:?}: {message}");
        assert!(!message.is_empty(), "{method} {body:?}");
    }
    let no_method = connection.call("/envoy.service.auth.v3.Authorization/", &framed(b""));
    assert_eq!(no_method.status, Some(UNIMPLEMENTED), "{no_method:?}");
    // What forward auth asks about a gRPC call looks like one: the answer must not be a success of HTTP.
    let no_service = connection.call("/no.such.Service/Method", &framed(b""));
    assert_eq!((no_service.http_status, no_service.status), (Some(404), Some(UNIMPLEMENTED)), "{no_service:?}");
    assert_eq!(connection.call(PROCESS, b"").status, Some(0), "a stream without messages");
}

/// The message that shows the head of a GET with this path. Envoy fills one of both places of a value.
fn request_headers(path: HeaderValue) -> Vec<u8> {
    request_head("GET", path, true)
}

/// The message that shows the head of a request, which `ends` with it or has a body.
fn request_head(method: &str, path: HeaderValue, ends: bool) -> Vec<u8> {
    let others = [(":method", method), (":authority", "a"), (":scheme", "http"), ("x-forwarded-for", "203.0.113.9")];
    let others = others.map(|(key, value)| HeaderValue {
        key: key.to_owned(),
        value: value.to_owned(),
        ..HeaderValue::default()
    });
    let headers = HeaderMap { headers: [&[path][..], &others].concat() };
    let head = HttpHeaders { headers: Some(headers), end_of_stream: ends, ..HttpHeaders::default() };
    let request = Some(processing_request::Request::RequestHeaders(head));
    framed(&ProcessingRequest { request, ..ProcessingRequest::default() }.encode_to_vec())
}

#[test]
fn a_stream_has_one_request_and_a_field_has_one_value() {
    let gateway = gateway();
    let connection = Connection::open(gateway.address());
    let path = |value: &str, raw_value: &[u8]| {
        let raw_value = raw_value.to_vec();
        request_headers(HeaderValue { key: ":path".to_owned(), value: value.to_owned(), raw_value })
    };
    let [one, other] = [path("/", b""), path("", b"/")];
    let twice = [&one[..], &other].concat();
    for (messages, expected) in
        [(one, 0), (other, 0), (path("/", b"/"), 0), (path("/", b"/x"), INVALID_ARGUMENT), (twice, INVALID_ARGUMENT)]
    {
        let ended = connection.call(PROCESS, &messages);
        assert_eq!(ended.status, Some(expected), "{messages:?}: {}", ended.message);
    }
}

/// The message that shows the head of an answer, and how Envoy says that it came about.
fn response_headers(code_details: Option<&str>) -> Vec<u8> {
    let text = |text: &str| Value { kind: Some(Kind::StringValue(text.to_owned())) };
    let fields = code_details.map(|details| ("response.code_details".to_owned(), text(details)));
    let attributes = Struct { fields: fields.into_iter().collect() };
    let status = HeaderValue { key: ":status".to_owned(), raw_value: b"429".to_vec(), ..HeaderValue::default() };
    let head = HttpHeaders { headers: Some(HeaderMap { headers: vec![status] }), ..HttpHeaders::default() };
    let message = ProcessingRequest {
        request: Some(processing_request::Request::ResponseHeaders(head)),
        attributes: [("envoy.filters.http.ext_proc".to_owned(), attributes)].into(),
        ..ProcessingRequest::default()
    };
    framed(&message.encode_to_vec())
}

#[test]
fn an_answer_without_a_request_goes_on_only_if_envoy_made_it_and_brings_no_request_along() {
    let gateway = gateway();
    let connection = Connection::open(gateway.address());
    let own = response_headers(Some("local_rate_limited"));
    let request =
        request_headers(HeaderValue { key: ":path".to_owned(), value: "/".to_owned(), ..HeaderValue::default() });
    let body =
        |part| framed(&ProcessingRequest { request: Some(part), ..ProcessingRequest::default() }.encode_to_vec());
    let request_body = body(processing_request::Request::RequestBody(HttpBody::default()));
    let response_body = body(processing_request::Request::ResponseBody(HttpBody::default()));
    let of_application = response_headers(Some("via_upstream"));
    let mut refused = 0;
    for (messages, answered, expected) in [
        (vec![&own], 1, 0),
        (vec![&own, &response_body, &response_body], 3, 0),
        (vec![&own, &request], 1, INVALID_ARGUMENT),
        (vec![&own, &request_body], 1, INVALID_ARGUMENT),
        (vec![&own, &of_application], 1, INVALID_ARGUMENT),
        (vec![&of_application], 0, INVALID_ARGUMENT),
        (vec![&response_headers(None)], 0, INVALID_ARGUMENT),
        (vec![&response_body], 0, INVALID_ARGUMENT),
    ] {
        let ended = connection.call(PROCESS, &messages.into_iter().flatten().copied().collect::<Vec<u8>>());
        refused += usize::from(expected == INVALID_ARGUMENT);
        let mut replies = Vec::new();
        let mut left = &ended.body[..];
        while let Some((prefix, rest)) = left.split_first_chunk::<5>() {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
            replies.push(ProcessingResponse::decode(&rest[..length]).expect("a reply"));
            left = &rest[length..];
        }
        assert_eq!((replies.len(), ended.status), (answered, Some(expected)), "{replies:?}: {}", ended.message);
    }
    eventually("what is refused is recorded", || gateway.stdout().len() >= refused);
    let lines = gateway.stdout();
    assert_eq!(lines.len(), refused, "what goes on is not recorded: {lines:?}");
    assert!(lines.iter().all(|line| line.contains("\"decision\":\"error\"")), "{lines:?}");
}

#[test]
fn a_request_whose_stream_is_refused_is_logged_with_the_reason() {
    let gateway = Gateway::start(
        "listen: {address: 127.0.0.1:0, serves: decisions}\nroutes: [{name: login, match: POST /login, limits: \
         [{name: account, key: param.username, rate: 1/hour}]}]",
    );
    let connection = Connection::open(gateway.address());
    let head = |method: &str, path: &str| {
        let path = HeaderValue { key: ":path".to_owned(), value: path.to_owned(), ..HeaderValue::default() };
        request_head(method, path, method == "GET")
    };
    let answer = response_headers(None);
    for (messages, path, decision, error) in [
        (
            [head("GET", "/twice"), head("GET", "/twice")],
            "/twice",
            "allowed",
            "request_headers describes the request a second time",
        ),
        ([head("POST", "/login"), answer], "/login", "error", "response_headers came before the request was decided"),
        ([head("GET", "/cut"), framed(b"\xff")], "/cut", "allowed", "failed to decode"),
    ] {
        let ended = connection.call(PROCESS, &messages.concat());
        assert_eq!(ended.status, Some(INVALID_ARGUMENT), "{path}: {}", ended.message);
        let line = gateway.log_line(path);
        assert_eq!(line["decision"], decision, "{line}");
        assert!(line["error"].as_str().is_some_and(|said| said.contains(error)), "{line}");
    }
}

#[test]
fn a_malformed_request_is_logged_as_it_was_described() {
    let gateway = gateway();
    let connection = Connection::open(gateway.address());
    let long = format!("/{}#", "x".repeat(3_000_000));
    for (path, host, logged, error) in [
        ("/a b?c", "a", "/a b", "the request target is malformed"),
        ("login", "a", "login", "the request target is malformed"),
        ("/\u{1b}[31m", "a", "/\u{1b}[31m", "the request target is malformed"),
        ("/c#d", "a", "/c#d", "the request target has a fragment"),
        ("/host", "a b", "/host", "the Host header is malformed"),
        (&long, "a", &long[..1024], "the request target has a fragment"),
    ] {
        let http = HttpRequest {
            method: "POST".to_owned(),
            path: path.to_owned(),
            host: host.to_owned(),
            headers: [("x-forwarded-for".to_owned(), "203.0.113.9".to_owned())].into(),
            ..HttpRequest::default()
        };
        let request = Some(Request { http: Some(http), ..Request::default() });
        let attributes = Some(AttributeContext { request, ..AttributeContext::default() });
        let reply: CheckResponse =
            connection.call(CHECK, &framed(&CheckRequest { attributes }.encode_to_vec())).decoded();
        let Some(check_response::HttpResponse::DeniedResponse(denied)) = reply.http_response else {
            panic!("{path}: {reply:?}");
        };
        assert_eq!(denied.status.map(|status| status.code), Some(400), "{path}");
        let problem: serde_json::Value = serde_json::from_str(&denied.body).expect("a problem document");
        let detail = problem["detail"].as_str().expect("what is wrong");
        assert_eq!(detail.trim_end_matches('.').to_lowercase(), error.to_lowercase(), "{path}");
        let headers = format!("{:?}", denied.headers);
        assert!(headers.contains("application/problem+json") && headers.contains("no-store"), "{headers}");
        let line = gateway.log_line(logged);
        let told =
            ["client", "method", "host", "decision", "error"].map(|name| line[name].as_str().unwrap_or_default());
        assert_eq!(told, ["203.0.113.9", "POST", host, "error", error], "{line}");
    }
}

#[test]
fn a_message_that_does_not_come_ends_its_call_alone() {
    let gateway = gateway();
    let connection = Connection::open(gateway.address());
    for method in [CHECK, SHOULD_RATE_LIMIT, PROCESS] {
        let waited = Stopwatch::start();
        let Called { status, message, .. } = connection.call_unfinished(method, b"\0\0\0\0\x09half");
        assert_eq!(status, Some(DEADLINE_EXCEEDED), "{method}: {message}");
        assert!(waited.elapsed().as_millis() >= 400, "{method}");
    }
    assert_eq!(connection.call(PROCESS, b"").status, Some(0), "the connection goes on");
}

#[test]
fn ten_thousand_streams_and_giant_messages_take_bounded_memory() {
    let gateway = gateway();
    let before = gateway.resident_kib();
    let connection = Connection::open(gateway.address());
    // A message of a million empty entries, and one that is a single long value.
    let entries = framed(&[&[0x0a, 0x01, b'd', 0x12, 0x80, 0x80, 0x3e][..], &[0x0a, 0x00].repeat(507_904)].concat());
    for body in [entries, framed(&vec![0; 4_000_000])] {
        assert_eq!(connection.call(SHOULD_RATE_LIMIT, &body).status, Some(INVALID_ARGUMENT));
    }
    let statuses = connection.call_many(PROCESS, 10_000);
    assert_eq!(statuses.len(), 10_000);
    assert!(statuses.iter().all(|status| matches!(status, None | Some(0))), "they end or are refused");
    let grown = gateway.peak_kib().saturating_sub(before);
    assert!(grown < 200 * 1024, "{grown} KiB");
    drop(TcpStream::connect(gateway.address()).expect("it accepts connections"));
    assert_eq!(Connection::open(gateway.address()).call(PROCESS, b"").status, Some(0), "others are served");
}
