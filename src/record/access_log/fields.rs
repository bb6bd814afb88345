//! The fields of a line, in the order in which people look for them, and their names in each format.

use std::net::IpAddr;
use std::time::Duration;

use http::{StatusCode, Version};

use super::LineContext;
use crate::record::{RequestRecord, TraceId};

/// How the lines of one format have fields.
pub(super) trait FieldFormat {
    /// The text after a string and after an integer.
    const TEXT_END: &str;
    const INTEGER_END: &str;
    /// The text after the start of another value, for `true`.
    const TRUE: &str;

    fn start(name: &FieldName) -> &FieldStart;

    /// Appends a field. Inlined into [`each`], which knows the name and kind of every field, so that constant text is
    /// copied without a call.
    fn put(line: &mut Vec<u8>, name: &FieldName, value: FieldValue<'_>);
}

/// How a field begins in each format.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldName {
    pub(super) json: FieldStart,
    pub(super) ecs: FieldStart,
    pub(super) otel: FieldStart,
    /// The whole field, where its value is unknown.
    pub(super) json_null: &'static str,
}

/// The text from the comma before a field up to its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldStart {
    /// With the quotation mark that the value begins with.
    pub(super) text: &'static str,
    pub(super) integer: &'static str,
    pub(super) other: &'static str,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldValue<'a> {
    Unknown,
    True,
    Text(&'a str),
    /// Text that needs no escape: one of our own words, or a token of HTTP.
    Word(&'a str),
    /// As the client sent it. It need not be UTF-8.
    Bytes(&'a [u8]),
    Number(u64),
    Status(StatusCode),
    Address(IpAddr),
    /// With its port, if it has one.
    Host(&'a str),
    Protocol(Version),
    Trace(TraceId),
    Hash(u128),
    MaskedKey(&'a [(String, String)]),
    /// The hashes of the keys with a login name, with the names of their limits.
    Keys(&'a RequestRecord<'a>, &'a LineContext<'a>),
    /// The names of the shadow limits that would have denied.
    ShadowLimits(&'a RequestRecord<'a>, &'a LineContext<'a>),
    Span(Duration),
}

macro_rules! name {
    ($json:literal, $ecs:literal, $otel:literal) => {
        FieldName {
            json: FieldStart {
                text: concat!(",\"", $json, "\":\""),
                integer: concat!(",\"", $json, "\":"),
                other: concat!(",\"", $json, "\":"),
            },
            ecs: FieldStart {
                text: concat!(",\"", $ecs, "\":\""),
                integer: concat!(",\"", $ecs, "\":"),
                other: concat!(",\"", $ecs, "\":"),
            },
            // OTLP writes integers as text, because JSON numbers need not hold 64 bits.
            otel: FieldStart {
                text: concat!(",{\"key\":\"", $otel, "\",\"value\":{\"stringValue\":\""),
                integer: concat!(",{\"key\":\"", $otel, "\",\"value\":{\"intValue\":\""),
                other: concat!(",{\"key\":\"", $otel, "\",\"value\":{"),
            },
            json_null: concat!(",\"", $json, "\":null"),
        }
    };
}

const REQUEST_ID: FieldName = name!("request_id", "http.request.id", "portcullis.request_id");

const TRACE_ID: FieldName = name!("trace_id", "trace.id", "trace_id");

const CLIENT: FieldName = name!("client", "client.ip", "client.address");

const PEER: FieldName = name!("peer", "source.ip", "network.peer.address");

const SCHEME: FieldName = name!("scheme", "url.scheme", "url.scheme");

const PROTOCOL: FieldName = name!("protocol", "http.version", "network.protocol.version");

const METHOD: FieldName = name!("method", "http.request.method", "http.request.method");

const HOST: FieldName = name!("host", "url.domain", "server.address");

const PATH: FieldName = name!("path", "url.path", "url.path");

const QUERY: FieldName = name!("query", "url.query", "url.query");

const USER_AGENT: FieldName = name!("user_agent", "user_agent.original", "user_agent.original");

const ROUTE: FieldName = name!("route", "portcullis.route", "portcullis.route");

const DECISION: FieldName = name!("decision", "event.action", "portcullis.decision");

const LIMIT: FieldName = name!("limit", "rule.name", "portcullis.limit");

const LIST: FieldName = name!("list", "portcullis.list", "portcullis.list");

const KEY: FieldName = name!("key", "portcullis.key", "portcullis.key");

const KEY_MASKED: FieldName = name!("key_masked", "portcullis.key_masked", "portcullis.key_masked");

const KEYS: FieldName = name!("keys", "portcullis.keys", "portcullis.keys");

const UNREAD: FieldName = name!("unread", "portcullis.unread", "portcullis.unread");

const BAN: FieldName = name!("ban", "portcullis.ban", "portcullis.ban");

const RETRY_AFTER: FieldName = name!("retry_after", "portcullis.retry_after", "portcullis.retry_after");

const SHADOW: FieldName = name!("shadow", "portcullis.shadow", "portcullis.shadow");

const STATUS: FieldName = name!("status", "http.response.status_code", "http.response.status_code");

const OUTCOME: FieldName = name!("outcome", "portcullis.outcome", "portcullis.outcome");

const UPSTREAM: FieldName = name!("upstream", "portcullis.upstream", "portcullis.upstream");

const SERVER: FieldName = name!("server", "portcullis.server", "portcullis.server");

const UPSTREAM_REQUEST_ID: FieldName =
    name!("upstream_request_id", "portcullis.upstream_request_id", "portcullis.upstream_request_id");

const DURATION: FieldName = name!("duration_ms", "event.duration", "portcullis.duration_ms");

const BYTES_IN: FieldName = name!("bytes_in", "http.request.body.bytes", "http.request.body.size");

const BYTES_OUT: FieldName = name!("bytes_out", "http.response.body.bytes", "http.response.body.size");

const GATEWAY: FieldName = name!("gateway", "service.node.name", "service.instance.id");

const ERROR: FieldName = name!("error", "error.message", "error.message");

fn or_unknown<'a, T>(value: Option<T>, known: impl FnOnce(T) -> FieldValue<'a>) -> FieldValue<'a> {
    value.map_or(FieldValue::Unknown, known)
}

/// Appends every field. `query`, `list`, `keys`, `unread`, `outcome`, `upstream_request_id`, `gateway` and
/// `error` are left out where they are unknown.
#[inline]
pub(super) fn each<F: FieldFormat>(line: &mut Vec<u8>, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    F::put(line, &REQUEST_ID, FieldValue::Text(request.request_id));
    F::put(line, &TRACE_ID, or_unknown(request.trace, FieldValue::Trace));
    F::put(line, &CLIENT, FieldValue::Address(request.identity.client.address()));
    F::put(line, &PEER, FieldValue::Address(request.identity.peer.address()));
    F::put(line, &SCHEME, FieldValue::Word(request.scheme));
    F::put(line, &PROTOCOL, or_unknown(request.version, FieldValue::Protocol));
    F::put(line, &METHOD, FieldValue::Word(request.method.as_str()));
    F::put(line, &HOST, FieldValue::Host(request.host));
    F::put(line, &PATH, FieldValue::Text(request.path));
    if let Some(query) = context.query {
        F::put(line, &QUERY, FieldValue::Text(query));
    }
    F::put(line, &USER_AGENT, or_unknown(request.user_agent, FieldValue::Bytes));
    F::put(line, &ROUTE, or_unknown(context.route, FieldValue::Text));
    F::put(line, &DECISION, FieldValue::Word(request.decision.as_str()));
    F::put(line, &LIMIT, or_unknown(request.limit, FieldValue::Text));
    if let Some(list) = request.list {
        F::put(line, &LIST, FieldValue::Text(list));
    }
    let key = request.applied_limit.and_then(|applied| applied.masked_key.as_ref());
    F::put(line, &KEY, or_unknown(key, |key| FieldValue::Hash(key.hash.0)));
    F::put(line, &KEY_MASKED, or_unknown(key, |key| FieldValue::MaskedKey(&key.parts)));
    if !request.keys.is_empty() {
        F::put(line, &KEYS, FieldValue::Keys(request, context));
    }
    if request.unread.is_some() {
        F::put(line, &UNREAD, FieldValue::True);
    }
    F::put(line, &BAN, or_unknown(request.ban, FieldValue::Text));
    F::put(line, &RETRY_AFTER, or_unknown(request.retry_after, FieldValue::Number));
    F::put(line, &SHADOW, FieldValue::ShadowLimits(request, context));
    F::put(line, &STATUS, or_unknown(request.status, FieldValue::Status));
    if let Some(outcome) = request.outcome {
        F::put(line, &OUTCOME, FieldValue::Word(outcome.as_str()));
    }
    F::put(line, &UPSTREAM, or_unknown(context.upstream, FieldValue::Text));
    F::put(line, &SERVER, or_unknown(request.upstream.and_then(|forwarded| forwarded.server), FieldValue::Text));
    if let Some(id) = request.upstream.and_then(|forwarded| forwarded.request_id) {
        F::put(line, &UPSTREAM_REQUEST_ID, FieldValue::Text(id));
    }
    F::put(line, &DURATION, FieldValue::Span(request.duration));
    F::put(line, &BYTES_IN, FieldValue::Number(request.bytes_in));
    F::put(line, &BYTES_OUT, FieldValue::Number(request.bytes_out));
    if let Some(gateway) = context.gateway {
        F::put(line, &GATEWAY, FieldValue::Text(gateway));
    }
    if let Some(error) = request.error {
        F::put(line, &ERROR, FieldValue::Text(error));
    }
}
