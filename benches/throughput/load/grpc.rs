//! What a proxy asks over gRPC.

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{HttpRequest, Request as Attributes};
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use http::Request;
use prost::Message;

use super::connect::SITE;
use super::http2::Question;
use crate::job::{Call, Job};

/// The call about the request of this job.
pub(super) fn question(call: Call, job: Job) -> Question {
    let is_denied = job.status != 200;
    let (method, message, start) = match call {
        // Its status comes first: code 8, RESOURCE_EXHAUSTED, or one of no content.
        Call::Check => (
            "envoy.service.auth.v3.Authorization/Check",
            check(job).encode_to_vec(),
            if is_denied { &b"\x0a\x02\x08\x08"[..] } else { b"\x0a\x00" },
        ),
        // The overall code comes first: 1 is OK, 2 is OVER_LIMIT.
        Call::ShouldRateLimit => (
            "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            should_rate_limit(job).encode_to_vec(),
            if is_denied { &b"\x08\x02"[..] } else { b"\x08\x01" },
        ),
    };
    let request = Request::post(format!("http://{SITE}/{method}"))
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .header("user-agent", "grpc-c++/1.62.0");
    Question {
        request: request.body(()).expect("a request"),
        body: framed(&message),
        status: 200,
        media_type: "application/grpc",
        message_begins: Some(start),
    }
}

/// A message with its flag and its length before it.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("a short message");
    [&[0], &length.to_be_bytes()[..], message].concat().into()
}

/// As Envoy describes a request without a body.
fn check(job: Job) -> CheckRequest {
    let pseudo = [(":method", job.sends.method()), (":path", job.path), (":authority", SITE), (":scheme", "https")];
    let more = [("x-forwarded-for", "203.0.113.9"), ("x-forwarded-proto", "https")];
    let fields = pseudo.into_iter().chain(job.sends.fields()).chain(more);
    let mut headers: std::collections::HashMap<String, String> =
        fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    headers.insert("cookie".to_owned(), job.sends.cookies().join("; "));
    let http = HttpRequest {
        id: "1234567890123456789".to_owned(),
        method: job.sends.method().to_owned(),
        headers,
        path: job.path.to_owned(),
        host: SITE.to_owned(),
        scheme: "https".to_owned(),
        protocol: "HTTP/1.1".to_owned(),
        ..HttpRequest::default()
    };
    let request = Attributes { http: Some(http), ..Attributes::default() };
    let attributes = AttributeContext { request: Some(request), ..AttributeContext::default() };
    CheckRequest { attributes: Some(attributes) }
}

/// One descriptor of one entry: the path.
fn should_rate_limit(job: Job) -> RateLimitRequest {
    let entry = Entry { key: "path".to_owned(), value: job.path.to_owned() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
    RateLimitRequest { domain: "bench".to_owned(), descriptors: vec![descriptor], ..RateLimitRequest::default() }
}
