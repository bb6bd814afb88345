//! The spans of a request that has ended, with the attributes of OpenTelemetry's conventions for HTTP. No query, no header but the
//! user agent, and no key becomes an attribute.

use std::time::{Duration, SystemTime};

use http::uri::Authority;
use http::{Method, StatusCode, Version};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::RequestTrace;
use crate::record::spans::random_span;
use crate::record::{RequestRecord, UpstreamRecord};
use crate::words::clock::Timestamp;

/// The configured names of the parts of a request.
#[derive(Clone, Copy, Debug)]
pub(in crate::record) struct SpanNames<'a> {
    pub(in crate::record) route: Option<&'a str>,
    pub(in crate::record) upstream: Option<&'a str>,
    /// How the server was reached.
    pub(in crate::record) server_scheme: &'static str,
}

/// The moment at which a request ended, by the clock of decisions and by the wall clock, which other programs share.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) at: Timestamp,
    pub(super) wall: Timestamp,
}

impl End {
    fn of(self, moment: Timestamp) -> SystemTime {
        self.before(self.at.since(moment))
    }

    fn before(self, span: Duration) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.wall.since(Timestamp::EPOCH).saturating_sub(span)
    }
}

/// The request, its decision if there was one, and its exchange with the application if there was one.
pub(super) fn spans(
    trace: &RequestTrace,
    request: &RequestRecord<'_>,
    names: SpanNames<'_>,
    end: End,
) -> Vec<SpanData> {
    let mut spans = Vec::with_capacity(3);
    spans.push(request_span(trace, request, names, end));
    spans.extend(decision_span(trace, request, end));
    if let Some(forwarded) = request.upstream {
        spans.extend(upstream_span(trace, request, forwarded, names, end));
    }
    spans
}

fn request_span(trace: &RequestTrace, request: &RequestRecord<'_>, names: SpanNames<'_>, end: End) -> SpanData {
    let (method, original) = method(request.method);
    let mut attributes = vec![
        KeyValue::new("http.request.method", method),
        KeyValue::new("url.scheme", request.scheme),
        KeyValue::new("url.path", short(request.path)),
        KeyValue::new("client.address", request.identity.client.address().to_string()),
        KeyValue::new("network.peer.address", request.identity.peer.address().to_string()),
        KeyValue::new("portcullis.request_id", request.request_id.to_owned()),
        KeyValue::new("portcullis.decision", request.decision.as_str()),
    ];
    attributes.extend(original.map(|original| KeyValue::new("http.request.method_original", short(original))));
    attributes
        .extend(request.version.map(|version| KeyValue::new("network.protocol.version", version_number(version))));
    attributes.extend(request.user_agent.map(|agent| KeyValue::new("user_agent.original", short_bytes(agent))));
    attributes.extend(names.route.map(|route| KeyValue::new("portcullis.route", route.to_owned())));
    attributes.extend(server_address(request.host));
    attributes.extend(status_code(request));
    let failure = request.status.filter(StatusCode::is_server_error);
    attributes.extend(failure.map(|status| KeyValue::new("error.type", status.as_str().to_owned())));
    let method = if original.is_some() { "HTTP" } else { method };
    let name = names.route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
    SpanData {
        parent_span_id: trace.parent.map_or(SpanId::INVALID, span_id),
        parent_span_is_remote: trace.parent.is_some(),
        span_kind: SpanKind::Server,
        name: name.into(),
        start_time: end.before(request.duration),
        attributes,
        status: if failure.is_some() { Status::error("") } else { Status::Unset },
        ..empty(trace, trace.request, end)
    }
}

fn decision_span(trace: &RequestTrace, request: &RequestRecord<'_>, end: End) -> Option<SpanData> {
    let decision = trace.decision?;
    let mut attributes = vec![
        KeyValue::new("portcullis.decision", request.decision.as_str()),
        KeyValue::new("portcullis.limits", i64::try_from(request.limits.len()).unwrap_or(i64::MAX)),
    ];
    attributes.extend(request.limit.map(|limit| KeyValue::new("portcullis.limit", limit.to_owned())));
    attributes.extend(request.list.map(|list| KeyValue::new("portcullis.list", list.to_owned())));
    Some(SpanData {
        span_kind: SpanKind::Internal,
        name: "decide".into(),
        start_time: end.before(end.at.since(decision.at) + decision.took),
        end_time: end.of(decision.at),
        attributes,
        ..empty(trace, random_span(), end)
    })
}

fn upstream_span(
    trace: &RequestTrace,
    request: &RequestRecord<'_>,
    forwarded: UpstreamRecord<'_>,
    names: SpanNames<'_>,
    end: End,
) -> Option<SpanData> {
    let moment = trace.upstream?;
    let (method, original) = method(request.method);
    let mut attributes = vec![KeyValue::new("http.request.method", method)];
    attributes.extend(original.map(|original| KeyValue::new("http.request.method_original", short(original))));
    attributes.extend(names.upstream.map(|upstream| KeyValue::new("portcullis.upstream", upstream.to_owned())));
    if let Some(server) = forwarded.server {
        attributes.extend(server_address(server));
        let url = format!("{}://{server}{}", names.server_scheme, request.path);
        attributes.push(KeyValue::new("url.full", short(&url)));
    }
    let resent = i64::try_from(forwarded.previous_attempts.len()).unwrap_or(i64::MAX);
    attributes.extend((resent > 0).then(|| KeyValue::new("http.request.resend_count", resent)));
    // If the application gave no answer, the status is the one of the gateway's own answer.
    let answered = request.status.filter(|_| forwarded.failure.is_none());
    attributes.extend(answered.and_then(|_| status_code(request)));
    let failed = answered.filter(|status| status.is_client_error() || status.is_server_error());
    let error = forwarded.failure.map(str::to_owned).or_else(|| Some(failed?.as_str().to_owned()));
    let status = if error.is_some() { Status::error("") } else { Status::Unset };
    attributes.extend(error.map(|error| KeyValue::new("error.type", error)));
    Some(SpanData {
        span_kind: SpanKind::Client,
        name: if original.is_some() { "HTTP" } else { method }.into(),
        start_time: end.of(moment.began),
        attributes,
        status,
        ..empty(trace, moment.span, end)
    })
}

/// A child of the request's span, which ends with it.
fn empty(trace: &RequestTrace, span: u64, end: End) -> SpanData {
    let id = TraceId::from(trace.trace);
    let end_time = end.of(end.at);
    SpanData {
        span_context: SpanContext::new(id, span_id(span), TraceFlags::SAMPLED, false, TraceState::NONE),
        parent_span_id: span_id(trace.request),
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: "".into(),
        start_time: end_time,
        end_time,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("portcullis")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn span_id(id: u64) -> SpanId {
    SpanId::from(id)
}

/// A method that the conventions know, or `_OTHER` and the method itself: anyone may send any, and names of spans must be few.
fn method(method: &Method) -> (&'static str, Option<&str>) {
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    match known.into_iter().find(|known| *known == method.as_str()) {
        Some(known) => (known, None),
        None => ("_OTHER", Some(method.as_str())),
    }
}

fn status_code(request: &RequestRecord<'_>) -> Option<KeyValue> {
    request.status.map(|status| KeyValue::new("http.response.status_code", i64::from(status.as_u16())))
}

fn server_address(host: &str) -> impl Iterator<Item = KeyValue> {
    let authority = host.parse::<Authority>().ok();
    let name = authority.as_ref().map(|authority| {
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        KeyValue::new("server.address", short(name))
    });
    let port = authority.and_then(|authority| authority.port_u16());
    name.into_iter().chain(port.map(|port| KeyValue::new("server.port", i64::from(port))))
}

fn version_number(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

// Texts of clients as attributes: a queue of long ones would take too much memory.

/// Bytes that a span keeps of one text.
const MAX_TEXT: usize = 1024;

/// The beginning of a text.
pub(super) fn short(text: &str) -> Value {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    Value::from(text[..end.unwrap_or(0)].to_owned())
}

/// The beginning of bytes that need not be UTF-8.
pub(super) fn short_bytes(bytes: &[u8]) -> Value {
    short(&String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(short("/a").as_str(), "/a");
        assert_eq!(short(&"é".repeat(600)).as_str().len(), MAX_TEXT);
        assert_eq!(short(&format!("a{}", "é".repeat(600))).as_str().len(), MAX_TEXT - 1);
        assert_eq!(short_bytes(b"a\xffb").as_str(), "a\u{fffd}b");
        assert!(short_bytes(&[0xff; 9000]).as_str().len() <= MAX_TEXT);
    }
}
