//! Lines of JSON with portcullis's own names.

use http::Version;

use super::LineContext;
use super::fields;
use super::fields::FieldValue;
use super::value::common_value;
use super::value::names;
use crate::clock::Timestamp;
use crate::record::RequestRecord;
use crate::record::line::millis;
use crate::record::line::quoted;
use crate::record::line::raw;
use crate::record::line::time;

/// Unknown fields are `null`.
pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    raw(line, "{\"time\":\"");
    time(line, at);
    line.push(b'"');
    fields::each(request, context, |name, value| {
        raw(line, name.json);
        match value {
            FieldValue::Unknown => raw(line, "null"),
            FieldValue::ShadowLimits(request, context) => names(line, context.shadow_limits(request)),
            FieldValue::Protocol(version) => quoted(line, alpn(version)),
            FieldValue::Host(host) => quoted(line, host),
            FieldValue::Span(span) => millis(line, span),
            value => common_value(line, value),
        }
    });
    raw(line, "}\n");
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
