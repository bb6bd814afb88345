//! Lines of JSON in our own words.

use http::Version;

use super::Named;
use super::fields;
use super::fields::Value;
use super::shadow;
use crate::clock::Timestamp;
use crate::record::RequestRecord;
use crate::record::line::address;
use crate::record::line::escaped;
use crate::record::line::millis;
use crate::record::line::number;
use crate::record::line::put;
use crate::record::line::quoted;
use crate::record::line::quoted_bytes;
use crate::record::line::raw;
use crate::record::line::time;

/// What is unknown is `null`.
pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, named: &Named<'_>) {
    raw(line, "{\"time\":\"");
    time(line, at);
    line.push(b'"');
    fields::each(request, named, |name, value| {
        raw(line, name.json);
        match value {
            Value::Unknown => raw(line, "null"),
            Value::Shadows(request, named) => names(line, shadow(request, named)),
            Value::Protocol(version) => quoted(line, alpn(version)),
            Value::Host(host) => quoted(line, host),
            Value::Span(span) => millis(line, span),
            value => plain(line, value),
        }
    });
    raw(line, "}\n");
}

/// What looks the same in every format that is JSON.
pub(super) fn plain(line: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Text(text) => quoted(line, text),
        Value::Bytes(bytes) => quoted_bytes(line, bytes),
        Value::Number(value) => number(line, value),
        Value::Address(ip) => {
            line.push(b'"');
            address(line, ip);
            line.push(b'"');
        }
        Value::Trace(id) => quoted(line, id.as_str()),
        Value::Hash(hash) => put(line, format_args!("\"{hash:032x}\"")),
        Value::Masked(key) => {
            line.push(b'"');
            masked(line, key);
            line.push(b'"');
        }
        Value::Unknown | Value::Shadows(..) | Value::Protocol(_) | Value::Host(_) | Value::Span(_) => {}
    }
}

/// `client_ip=198.51.*.* param.username=a***1f3c`, within a string of JSON.
fn masked(line: &mut Vec<u8>, key: &[(String, String)]) {
    for (position, (selector, value)) in key.iter().enumerate() {
        if position > 0 {
            line.push(b' ');
        }
        escaped(line, selector);
        line.push(b'=');
        escaped(line, value);
    }
}

pub(super) fn names<'n>(line: &mut Vec<u8>, names: impl Iterator<Item = &'n str>) {
    line.push(b'[');
    for (position, name) in names.enumerate() {
        if position > 0 {
            line.push(b',');
        }
        quoted(line, name);
    }
    line.push(b']');
}

/// As TLS calls the protocols: there is one list of such names.
fn alpn(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "http/1.0",
        Version::HTTP_2 => "h2",
        Version::HTTP_3 => "h3",
        _ => "http/1.1",
    }
}
