//! Calls that describe no request: each is in the request log with its cause, in the metrics, and named to the operator.

use envoy_types::pb::envoy::config::core::v3::{HeaderMap, HeaderValue};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{HttpRequest, Request};
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest};
use envoy_types::pb::envoy::service::ext_proc::v3::{HttpHeaders, ProcessingRequest, processing_request};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use prost::Message;
use serde_json::{Value, json};

use crate::call::{Connection, framed};
use crate::support::{Gateway, eventually};

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
const PROCESS: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

const INVALID_ARGUMENT: u32 = 3;

/// A call that is no description, and what its line in the request log says.
struct Mistake {
    method: &'static str,
    message: Vec<u8>,
    path: &'static str,
    cause: &'static str,
}

fn gateway() -> Gateway {
    Gateway::start(
        "listen: {address: 127.0.0.1:0, serves: decisions}\nadmin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\n\
         routes: [{name: login, match: POST /login, limits: [{name: account, key: param.username, rate: 9/hour}]}]",
    )
}

/// A description without mistakes, but for those that are made in it.
fn check(change: impl FnOnce(&mut HttpRequest)) -> Vec<u8> {
    let mut http = HttpRequest {
        method: "POST".to_owned(),
        path: "/login".to_owned(),
        host: "a.test".to_owned(),
        headers: [("x-forwarded-for".to_owned(), "203.0.113.9".to_owned())].into(),
        body: "username=alice".to_owned(),
        ..HttpRequest::default()
    };
    change(&mut http);
    let request = Some(Request { http: Some(http), ..Request::default() });
    let attributes = Some(AttributeContext { request, ..AttributeContext::default() });
    framed(&CheckRequest { attributes }.encode_to_vec())
}

/// The message that shows a head with these fields.
pub(crate) fn process(fields: &[(&str, &str)]) -> Vec<u8> {
    let field = |&(key, value): &(&str, &str)| HeaderValue {
        key: key.to_owned(),
        raw_value: value.as_bytes().to_vec(),
        ..HeaderValue::default()
    };
    let headers = Some(HeaderMap { headers: fields.iter().map(field).collect() });
    let head = HttpHeaders { headers, end_of_stream: true, ..HttpHeaders::default() };
    let request = Some(processing_request::Request::RequestHeaders(head));
    framed(&ProcessingRequest { request, ..ProcessingRequest::default() }.encode_to_vec())
}

fn mistakes() -> Vec<Mistake> {
    let [method, path, host, client] =
        [(":method", "GET"), (":path", "/p"), (":authority", "a.test"), ("x-forwarded-for", "203.0.113.9")];
    let of_check = |path, message, cause| Mistake { method: CHECK, message, path, cause };
    let of_process =
        |path, fields: &[(&str, &str)], cause| Mistake { method: PROCESS, message: process(fields), path, cause };
    let negative = RateLimitDescriptor { is_negative_hits: true, ..RateLimitDescriptor::default() };
    let negative =
        RateLimitRequest { domain: "d".to_owned(), descriptors: vec![negative], ..RateLimitRequest::default() };
    vec![
        of_check("/login", check(|http| http.headers.clear()), "attributes.source.address is missing"),
        of_check("/login", check(|http| http.host.clear()), "attributes.request.http.host is missing"),
        of_check("/login", check(|http| http.method.clear()), "attributes.request.http.method is missing"),
        of_check("", check(|http| http.path.clear()), "attributes.request.http.path is missing"),
        of_check(
            "/login",
            check(|http| drop(http.headers.insert(":authority".to_owned(), "b.test".to_owned()))),
            "attributes.request.http.host describes the request a second time",
        ),
        of_check("", framed(&CheckRequest::default().encode_to_vec()), "attributes is missing"),
        of_check(
            "/login",
            check(|http| {
                http.body.clear();
                http.headers.insert("content-length".to_owned(), "14".to_owned());
            }),
            "attributes.request.http.raw_body is missing",
        ),
        of_check("", framed(b"\xff\xff\xff"), "failed to decode"),
        of_process("/p", &[method, path, host], "source.address is missing"),
        of_process("/p", &[method, path, client], ":authority is missing"),
        of_process("/p", &[path, host, client], ":method is missing"),
        of_process("", &[method, host, client], ":path is missing"),
        of_process("/p", &[method, path, (":path", "/q"), host, client], ":path describes the request a second time"),
        Mistake { method: PROCESS, message: framed(b""), path: "", cause: "request_headers is missing" },
        Mistake { method: PROCESS, message: framed(b"\xff"), path: "", cause: "failed to decode" },
        Mistake {
            method: SHOULD_RATE_LIMIT,
            message: framed(&negative.encode_to_vec()),
            path: "",
            cause: "is_negative_hits",
        },
        Mistake { method: SHOULD_RATE_LIMIT, message: framed(b""), path: "", cause: "the domain is empty" },
        Mistake { method: SHOULD_RATE_LIMIT, message: framed(b"\xff"), path: "", cause: "failed to decode" },
    ]
}

#[test]
fn each_mistaken_call_is_recorded_once_with_its_cause_and_counted() {
    let gateway = gateway();
    let connection = Connection::open(gateway.address());
    let mistakes = mistakes();
    for (number, Mistake { method, message, path, cause }) in mistakes.iter().enumerate() {
        let called = connection.call(method, message);
        assert_eq!(called.status, Some(INVALID_ARGUMENT), "{cause}: {}", called.message);
        eventually("it is recorded", || gateway.stdout().len() > number);
        let lines = gateway.stdout();
        assert_eq!(lines.len(), number + 1, "{cause}");
        let line: Value = serde_json::from_str(&lines[number]).expect("JSON");
        let told = [&line["decision"], &line["status"], &line["path"]];
        assert_eq!(told, [&json!("error"), &json!(400), &json!(path)], "{cause}: {line}");
        assert!(line["error"].as_str().is_some_and(|error| error.contains(cause)), "{cause}: {line}");
    }
    let metrics = gateway.admin_request("GET", "/metrics").send().text();
    let counted = metrics
        .lines()
        .filter(|line| line.starts_with("portcullis_requests_total") && line.contains("decision=\"error\""))
        .map(|line| line.rsplit(' ').next().and_then(|count| count.parse::<usize>().ok()).expect("a number"))
        .sum::<usize>();
    assert_eq!(counted, mistakes.len(), "{metrics}");
}

#[test]
fn a_second_mistake_is_named_within_the_minute_of_the_first() {
    let gateway = gateway();
    let connection = Connection::open(gateway.address());
    let named = || {
        let lines = gateway.stderr().into_iter().filter(|line| line.contains("a proxy asked and got no decision"));
        lines.map(|line| serde_json::from_str::<Value>(&line).expect("JSON")).collect::<Vec<_>>()
    };
    let bare = crate::support::Request::new(gateway.address(), "GET", "/auth");
    let without_descriptor = RateLimitRequest { domain: "d".to_owned(), ..RateLimitRequest::default() };
    for _ in 0..3 {
        connection.call(CHECK, &check(|http| http.headers.clear()));
        connection.call(CHECK, &check(|http| http.host.clear()));
        connection.call(PROCESS, &process(&[(":method", "GET"), (":path", "/p"), (":authority", "a.test")]));
        connection.call(SHOULD_RATE_LIMIT, &framed(b""));
        connection.call(SHOULD_RATE_LIMIT, &framed(&without_descriptor.encode_to_vec()));
        assert_eq!(bare.clone().send().status, 400);
    }
    eventually("six are named", || named().len() >= 6);
    let parts: Vec<_> = named().iter().map(|line| line["part"].as_str().unwrap_or_default().to_owned()).collect();
    let expected = [
        "attributes.source.address",
        "attributes.request.http.host",
        "source.address",
        "domain",
        "descriptors",
        "X-Forwarded-Uri",
    ];
    assert_eq!(parts, expected);
}
