//! The lines of a request in each format.

use http::Version;

use super::fields::{FieldFormat, FieldName, FieldStart, FieldValue};
use super::{LineContext, fields};
use crate::record::access_log::write::{message, names, put_usual, split_port, version_number};
use crate::record::line::{millis, nanos, plain, quoted, raw, time};
use crate::record::sinks::ECS_VERSION;
use crate::record::{DecisionLabel, ObservedOutcome, RequestRecord};
use crate::words::clock::Timestamp;
use crate::words::digits::{push_address, push_decimal};

// JSON with portcullis's own names.

/// Unknown fields are `null`.
pub(super) fn write_json(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    raw(line, "{\"time\":\"");
    time(line, at);
    line.push(b'"');
    fields::each::<Json>(line, request, context);
    raw(line, "}\n");
}

struct Json;

impl FieldFormat for Json {
    const TEXT_END: &str = "\"";
    const INTEGER_END: &str = "";
    const TRUE: &str = "true";

    fn start(name: &FieldName) -> &FieldStart {
        &name.json
    }

    #[expect(clippy::inline_always, reason = "see `FieldFormat`")]
    #[inline(always)]
    fn put(line: &mut Vec<u8>, name: &FieldName, value: FieldValue<'_>) {
        match value {
            FieldValue::Unknown => raw(line, name.json_null),
            FieldValue::ShadowLimits(request, context) => {
                raw(line, name.json.other);
                names(line, context.shadow_limits(request));
            }
            FieldValue::Span(span) => {
                raw(line, name.json.other);
                millis(line, span);
            }
            FieldValue::Host(host) => put_usual::<Self>(line, name, FieldValue::Text(host)),
            FieldValue::Protocol(version) => put_usual::<Self>(line, name, FieldValue::Word(alpn(version))),
            value => put_usual::<Self>(line, name, value),
        }
    }
}

/// The protocol's name in the ALPN registry of TLS.
fn alpn(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "http/1.0",
        Version::HTTP_2 => "h2",
        Version::HTTP_3 => "h3",
        _ => "http/1.1",
    }
}

// The Elastic Common Schema.

/// Unknown fields are left out.
pub(super) fn write_ecs(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    raw(line, "{\"@timestamp\":\"");
    time(line, at);
    raw(line, "\",\"log.level\":\"info\",\"message\":\"");
    message(line, request);
    raw(line, "\",\"ecs.version\":\"");
    raw(line, ECS_VERSION);
    raw(line, "\",\"service.name\":\"portcullis\",\"event.dataset\":\"portcullis.requests\",\"event.kind\":\"event\"");
    raw(line, ",\"event.category\":[\"web\"],\"event.type\":[\"access\",\"");
    raw(line, event_type(request.decision));
    raw(line, "\"],\"event.outcome\":\"");
    raw(line, event_outcome(request));
    line.push(b'"');
    fields::each::<Ecs>(line, request, context);
    raw(line, "}\n");
}

struct Ecs;

impl FieldFormat for Ecs {
    const TEXT_END: &str = "\"";
    const INTEGER_END: &str = "";
    const TRUE: &str = "true";

    fn start(name: &FieldName) -> &FieldStart {
        &name.ecs
    }

    #[expect(clippy::inline_always, reason = "see `FieldFormat`")]
    #[inline(always)]
    fn put(line: &mut Vec<u8>, name: &FieldName, value: FieldValue<'_>) {
        match value {
            FieldValue::Unknown => {}
            FieldValue::ShadowLimits(request, context) => {
                if context.shadow_limits(request).next().is_some() {
                    raw(line, name.ecs.other);
                    names(line, context.shadow_limits(request));
                }
            }
            FieldValue::Protocol(version) => put_usual::<Self>(line, name, FieldValue::Word(version_number(version))),
            FieldValue::Host(host) => {
                let (domain, port) = split_port(host);
                put_usual::<Self>(line, name, FieldValue::Text(domain));
                if let Some(port) = port {
                    raw(line, ",\"url.port\":");
                    push_decimal(line, port.into());
                }
            }
            FieldValue::Span(span) => {
                let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
                put_usual::<Self>(line, name, FieldValue::Number(nanos));
            }
            value => put_usual::<Self>(line, name, value),
        }
    }
}

fn event_type(decision: DecisionLabel) -> &'static str {
    match decision {
        DecisionLabel::Error => "error",
        _ if decision.passes() => "allowed",
        _ => "denied",
    }
}

fn event_outcome(request: &RequestRecord<'_>) -> &'static str {
    match request.status {
        None => "unknown",
        Some(status) if status.is_client_error() || status.is_server_error() => "failure",
        Some(_) => "success",
    }
}

// The log data model of OpenTelemetry: each line is a `LogRecord` in OTLP's JSON.

/// Unknown fields are left out.
pub(super) fn write_otel(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    raw(line, "{\"timeUnixNano\":");
    nanos(line, at);
    raw(line, ",\"severityNumber\":9,\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"");
    message(line, request);
    raw(line, "\"}");
    if let Some(id) = request.trace {
        raw(line, ",\"traceId\":\"");
        line.extend_from_slice(id.as_bytes());
        line.push(b'"');
    }
    raw(line, ",\"attributes\":[{\"key\":\"network.protocol.name\",\"value\":{\"stringValue\":\"http\"}}");
    fields::each::<Otel>(line, request, context);
    raw(line, "]}\n");
}

struct Otel;

impl FieldFormat for Otel {
    const TEXT_END: &str = "\"}}";
    const INTEGER_END: &str = "\"}}";
    const TRUE: &str = "\"boolValue\":true}}";

    fn start(name: &FieldName) -> &FieldStart {
        &name.otel
    }

    #[expect(clippy::inline_always, reason = "see `FieldFormat`")]
    #[inline(always)]
    fn put(line: &mut Vec<u8>, name: &FieldName, value: FieldValue<'_>) {
        match value {
            // A `LogRecord` has a field of its own for the trace.
            FieldValue::Unknown | FieldValue::Trace(_) => {}
            FieldValue::ShadowLimits(request, context) => {
                if context.shadow_limits(request).next().is_none() {
                    return;
                }
                raw(line, name.otel.other);
                raw(line, "\"arrayValue\":{\"values\":[");
                for (position, limit) in context.shadow_limits(request).enumerate() {
                    raw(line, if position > 0 { ",{\"stringValue\":" } else { "{\"stringValue\":" });
                    quoted(line, limit);
                    line.push(b'}');
                }
                raw(line, "]}}}");
            }
            FieldValue::Span(span) => {
                raw(line, name.otel.other);
                raw(line, "\"doubleValue\":");
                millis(line, span);
                raw(line, "}}");
            }
            FieldValue::Host(host) => {
                let (domain, port) = split_port(host);
                put_usual::<Self>(line, name, FieldValue::Text(domain));
                if let Some(port) = port {
                    raw(line, ",{\"key\":\"server.port\",\"value\":{\"intValue\":\"");
                    push_decimal(line, port.into());
                    raw(line, Self::INTEGER_END);
                }
            }
            FieldValue::Protocol(version) => put_usual::<Self>(line, name, FieldValue::Word(version_number(version))),
            value => put_usual::<Self>(line, name, value),
        }
    }
}

// Lines for people.

pub(super) fn write_human(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    time(line, at);
    line.push(b' ');
    push_address(line, request.identity.client.address());
    for word in [request.method.as_str(), request.host] {
        line.push(b' ');
        plain(line, word);
    }
    plain(line, request.path);
    if let Some(query) = context.query {
        line.push(b'?');
        plain(line, query);
    }
    line.push(b' ');
    plain(line, request.status.as_ref().map_or("-", |status| status.as_str()));
    line.push(b' ');
    plain(line, request.decision.as_str());
    labelled(line, "limit", request.limit);
    labelled(line, "list", request.list);
    if let Some(key) = request.applied_limit.and_then(|applied| applied.masked_key.as_ref()) {
        for (selector, value) in &key.parts {
            labelled(line, selector, Some(value));
        }
    }
    labelled(line, "unread", request.unread.map(|_| "true"));
    labelled(line, "ban", request.ban);
    if let Some(seconds) = request.retry_after {
        raw(line, " retry_after=");
        push_decimal(line, seconds);
    }
    labelled(line, "outcome", request.outcome.map(ObservedOutcome::as_str));
    labelled(line, "route", context.route);
    labelled(line, "upstream", context.upstream);
    labelled(line, "server", request.upstream.and_then(|forwarded| forwarded.server));
    labelled(line, "upstream_id", request.upstream.and_then(|forwarded| forwarded.request_id));
    for limit in context.shadow_limits(request) {
        labelled(line, "shadow", Some(limit));
    }
    line.push(b' ');
    millis(line, request.duration);
    raw(line, "ms");
    labelled(line, "id", Some(request.request_id));
    labelled(line, "gateway", context.gateway);
    labelled(line, "error", request.error);
    line.push(b'\n');
}

fn labelled(line: &mut Vec<u8>, label: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    line.push(b' ');
    plain(line, label);
    line.push(b'=');
    if value.contains(' ') {
        line.push(b'"');
        plain(line, value);
        line.push(b'"');
    } else {
        plain(line, value);
    }
}
