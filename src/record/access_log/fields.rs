//! The fields of a line, in the order in which people look for them, and their names in each format.

use std::net::IpAddr;
use std::time::Duration;

use http::Version;

use super::LineContext;
use crate::record::RequestRecord;
use crate::record::TraceId;

/// The name of a field as a line has it: from the comma before it up to its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldName {
    pub(super) json: &'static str,
    pub(super) ecs: &'static str,
    pub(super) otel: &'static str,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldValue<'a> {
    Unknown,
    Text(&'a str),
    /// As the client sent it. It need not be UTF-8.
    Bytes(&'a [u8]),
    Number(u64),
    Address(IpAddr),
    /// With its port, if it has one.
    Host(&'a str),
    Protocol(Version),
    Trace(TraceId),
    Hash(u128),
    MaskedKey(&'a [(String, String)]),
    /// The names of the shadow limits that would have denied.
    ShadowLimits(&'a RequestRecord<'a>, &'a LineContext<'a>),
    Span(Duration),
}

macro_rules! name {
    ($json:literal, $ecs:literal, $otel:literal) => {
        FieldName {
            json: concat!(",\"", $json, "\":"),
            ecs: concat!(",\"", $ecs, "\":"),
            otel: concat!(",{\"key\":\"", $otel, "\",\"value\":"),
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
const KEY: FieldName = name!("key", "portcullis.key", "portcullis.key");
const KEY_MASKED: FieldName = name!("key_masked", "portcullis.key_masked", "portcullis.key_masked");
const BAN: FieldName = name!("ban", "portcullis.ban", "portcullis.ban");
const RETRY_AFTER: FieldName = name!("retry_after", "portcullis.retry_after", "portcullis.retry_after");
const SHADOW: FieldName = name!("shadow", "portcullis.shadow", "portcullis.shadow");
const STATUS: FieldName = name!("status", "http.response.status_code", "http.response.status_code");
const OUTCOME: FieldName = name!("outcome", "portcullis.outcome", "portcullis.outcome");
const UPSTREAM: FieldName = name!("upstream", "portcullis.upstream", "portcullis.upstream");
const SERVER: FieldName = name!("server", "portcullis.server", "portcullis.server");
const DURATION: FieldName = name!("duration_ms", "event.duration", "portcullis.duration_ms");
const BYTES_IN: FieldName = name!("bytes_in", "http.request.body.bytes", "http.request.body.size");
const BYTES_OUT: FieldName = name!("bytes_out", "http.response.body.bytes", "http.response.body.size");
const ERROR: FieldName = name!("error", "error.message", "error.message");

fn text(text: Option<&str>) -> FieldValue<'_> {
    text.map_or(FieldValue::Unknown, FieldValue::Text)
}

/// Calls `put` for every field. `query`, `outcome` and `error` are left out where they are unknown.
#[inline]
pub(super) fn each(
    request: &RequestRecord<'_>,
    context: &LineContext<'_>,
    mut put: impl FnMut(&FieldName, FieldValue<'_>),
) {
    put(&REQUEST_ID, FieldValue::Text(request.request_id));
    put(&TRACE_ID, request.trace.map_or(FieldValue::Unknown, FieldValue::Trace));
    put(&CLIENT, FieldValue::Address(request.identity.client.address()));
    put(&PEER, FieldValue::Address(request.identity.peer.address()));
    put(&SCHEME, FieldValue::Text(request.scheme));
    put(&PROTOCOL, request.version.map_or(FieldValue::Unknown, FieldValue::Protocol));
    put(&METHOD, FieldValue::Text(request.method.as_str()));
    put(&HOST, FieldValue::Host(request.host));
    put(&PATH, FieldValue::Text(request.path));
    if let Some(query) = context.query {
        put(&QUERY, FieldValue::Text(query));
    }
    put(&USER_AGENT, request.user_agent.map_or(FieldValue::Unknown, FieldValue::Bytes));
    put(&ROUTE, text(context.route));
    put(&DECISION, FieldValue::Text(request.decision.as_str()));
    put(&LIMIT, text(request.limit));
    let key = request.applied_limit.and_then(|applied| applied.masked_key.as_ref());
    put(&KEY, key.map_or(FieldValue::Unknown, |key| FieldValue::Hash(key.hash.0)));
    put(&KEY_MASKED, key.map_or(FieldValue::Unknown, |key| FieldValue::MaskedKey(&key.parts)));
    put(&BAN, text(request.ban));
    put(&RETRY_AFTER, request.retry_after.map_or(FieldValue::Unknown, FieldValue::Number));
    put(&SHADOW, FieldValue::ShadowLimits(request, context));
    put(&STATUS, request.status.map_or(FieldValue::Unknown, |status| FieldValue::Number(status.as_u16().into())));
    if let Some(outcome) = request.outcome {
        put(&OUTCOME, FieldValue::Text(outcome.as_str()));
    }
    put(&UPSTREAM, text(context.upstream));
    put(&SERVER, text(request.upstream.and_then(|forwarded| forwarded.server)));
    put(&DURATION, FieldValue::Span(request.duration));
    put(&BYTES_IN, FieldValue::Number(request.bytes_in));
    put(&BYTES_OUT, FieldValue::Number(request.bytes_out));
    if let Some(error) = request.error {
        put(&ERROR, FieldValue::Text(error));
    }
}
