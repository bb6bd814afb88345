//! What a line says of a request, in the order people look for it, and what each format calls it.

use std::net::IpAddr;
use std::time::Duration;

use http::Version;

use super::Named;
use crate::record::ObservedOutcome;
use crate::record::RequestRecord;
use crate::record::TraceId;

/// A field's name as it stands in a line: behind a comma, up to its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) json: &'static str,
    pub(super) ecs: &'static str,
    pub(super) otel: &'static str,
}

/// What a field may say.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Unknown,
    Text(&'a str),
    /// As it came, whatever bytes that is.
    Bytes(&'a [u8]),
    Number(u64),
    Address(IpAddr),
    /// With its port, where it has one.
    Host(&'a str),
    Protocol(Version),
    Trace(TraceId),
    Hash(u128),
    /// A key, masked.
    Masked(&'a [(String, String)]),
    /// The shadow limits that would have denied.
    Shadows(&'a RequestRecord<'a>, &'a Named<'a>),
    Span(Duration),
}

macro_rules! name {
    ($json:literal, $ecs:literal, $otel:literal) => {
        Name {
            json: concat!(",\"", $json, "\":"),
            ecs: concat!(",\"", $ecs, "\":"),
            otel: concat!(",{\"key\":\"", $otel, "\",\"value\":"),
        }
    };
}

const REQUEST_ID: Name = name!("request_id", "http.request.id", "portcullis.request_id");
const TRACE_ID: Name = name!("trace_id", "trace.id", "trace_id");
const CLIENT: Name = name!("client", "client.ip", "client.address");
const PEER: Name = name!("peer", "source.ip", "network.peer.address");
const SCHEME: Name = name!("scheme", "url.scheme", "url.scheme");
const PROTOCOL: Name = name!("protocol", "http.version", "network.protocol.version");
const METHOD: Name = name!("method", "http.request.method", "http.request.method");
const HOST: Name = name!("host", "url.domain", "server.address");
const PATH: Name = name!("path", "url.path", "url.path");
const QUERY: Name = name!("query", "url.query", "url.query");
const USER_AGENT: Name = name!("user_agent", "user_agent.original", "user_agent.original");
const ROUTE: Name = name!("route", "portcullis.route", "portcullis.route");
const DECISION: Name = name!("decision", "event.action", "portcullis.decision");
const LIMIT: Name = name!("limit", "rule.name", "portcullis.limit");
const KEY: Name = name!("key", "portcullis.key", "portcullis.key");
const KEY_MASKED: Name = name!("key_masked", "portcullis.key_masked", "portcullis.key_masked");
const BAN: Name = name!("ban", "portcullis.ban", "portcullis.ban");
const RETRY_AFTER: Name = name!("retry_after", "portcullis.retry_after", "portcullis.retry_after");
const SHADOW: Name = name!("shadow", "portcullis.shadow", "portcullis.shadow");
const STATUS: Name = name!("status", "http.response.status_code", "http.response.status_code");
const OUTCOME: Name = name!("outcome", "portcullis.outcome", "portcullis.outcome");
const UPSTREAM: Name = name!("upstream", "portcullis.upstream", "portcullis.upstream");
const SERVER: Name = name!("server", "portcullis.server", "portcullis.server");
const DURATION: Name = name!("duration_ms", "event.duration", "portcullis.duration_ms");
const BYTES_IN: Name = name!("bytes_in", "http.request.body.bytes", "http.request.body.size");
const BYTES_OUT: Name = name!("bytes_out", "http.response.body.bytes", "http.response.body.size");
const ERROR: Name = name!("error", "error.message", "error.message");

fn text(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::Unknown, Value::Text)
}

/// Puts every field. `query`, `outcome` and `error` are there only where there is something to say.
#[inline]
pub(super) fn each(request: &RequestRecord<'_>, named: &Named<'_>, mut put: impl FnMut(&Name, Value<'_>)) {
    put(&REQUEST_ID, Value::Text(request.request_id));
    put(&TRACE_ID, request.trace.map_or(Value::Unknown, Value::Trace));
    put(&CLIENT, Value::Address(request.identity.client.address()));
    put(&PEER, Value::Address(request.identity.peer.address()));
    put(&SCHEME, Value::Text(request.scheme));
    put(&PROTOCOL, request.version.map_or(Value::Unknown, Value::Protocol));
    put(&METHOD, Value::Text(request.method.as_str()));
    put(&HOST, Value::Host(request.host));
    put(&PATH, Value::Text(request.path));
    if let Some(query) = named.query {
        put(&QUERY, Value::Text(query));
    }
    put(&USER_AGENT, request.user_agent.map_or(Value::Unknown, Value::Bytes));
    put(&ROUTE, text(named.route));
    put(&DECISION, Value::Text(request.decision.as_str()));
    put(&LIMIT, text(request.limit));
    let key = request.applied_limit.and_then(|applied| applied.masked_key.as_ref());
    put(&KEY, key.map_or(Value::Unknown, |key| Value::Hash(key.hash.0)));
    put(&KEY_MASKED, key.map_or(Value::Unknown, |key| Value::Masked(&key.parts)));
    put(&BAN, text(request.ban));
    put(&RETRY_AFTER, request.retry_after.map_or(Value::Unknown, Value::Number));
    put(&SHADOW, Value::Shadows(request, named));
    put(&STATUS, request.status.map_or(Value::Unknown, |status| Value::Number(status.as_u16().into())));
    if let Some(meaning) = request.outcome {
        put(&OUTCOME, Value::Text(ObservedOutcome::as_str(meaning)));
    }
    put(&UPSTREAM, text(named.upstream));
    put(&SERVER, text(request.upstream.and_then(|forwarded| forwarded.server)));
    put(&DURATION, Value::Span(request.duration));
    put(&BYTES_IN, Value::Number(request.bytes_in));
    put(&BYTES_OUT, Value::Number(request.bytes_out));
    if let Some(error) = request.error {
        put(&ERROR, Value::Text(error));
    }
}
