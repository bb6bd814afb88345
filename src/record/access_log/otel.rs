//! Lines in the log data model of OpenTelemetry: each is a `LogRecord` in the JSON of its protocol.

use super::Named;
use super::ecs::apart;
use super::ecs::number_of;
use super::fields;
use super::fields::Value;
use super::json::plain;
use super::sentence;
use super::shadow;
use crate::clock::Timestamp;
use crate::record::RequestRecord;
use crate::record::line::millis;
use crate::record::line::nanos;
use crate::record::line::number;
use crate::record::line::quoted;
use crate::record::line::raw;

/// What is unknown is left out.
pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, named: &Named<'_>) {
    raw(line, "{\"timeUnixNano\":");
    nanos(line, at);
    raw(line, ",\"severityNumber\":9,\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"");
    sentence(line, request);
    raw(line, "\"}");
    if let Some(id) = request.trace {
        raw(line, ",\"traceId\":");
        quoted(line, id.as_str());
    }
    raw(line, ",\"attributes\":[{\"key\":\"network.protocol.name\",\"value\":{\"stringValue\":\"http\"}}");
    fields::each(request, named, |name, value| match value {
        // The record says by itself to which trace it belongs.
        Value::Unknown | Value::Trace(_) => {}
        Value::Shadows(request, named) => {
            if shadow(request, named).next().is_none() {
                return;
            }
            raw(line, name.otel);
            raw(line, "{\"arrayValue\":{\"values\":[");
            for (position, limit) in shadow(request, named).enumerate() {
                raw(line, if position > 0 { ",{\"stringValue\":" } else { "{\"stringValue\":" });
                quoted(line, limit);
                line.push(b'}');
            }
            raw(line, "]}}}");
        }
        Value::Number(value) => {
            raw(line, name.otel);
            integer(line, value);
        }
        Value::Span(span) => {
            raw(line, name.otel);
            raw(line, "{\"doubleValue\":");
            millis(line, span);
            raw(line, "}}");
        }
        Value::Host(host) => {
            let (name_of_host, port) = apart(host);
            raw(line, name.otel);
            text(line, Value::Text(name_of_host));
            if let Some(port) = port {
                raw(line, ",{\"key\":\"server.port\",\"value\":");
                integer(line, port.into());
            }
        }
        Value::Protocol(version) => {
            raw(line, name.otel);
            text(line, Value::Text(number_of(version)));
        }
        value => {
            raw(line, name.otel);
            text(line, value);
        }
    });
    raw(line, "]}\n");
}

/// What is a string in JSON is one here.
fn text(line: &mut Vec<u8>, value: Value<'_>) {
    raw(line, "{\"stringValue\":");
    plain(line, value);
    raw(line, "}}");
}

/// Whole numbers are written as text: JSON has none of 64 bits.
fn integer(line: &mut Vec<u8>, value: u64) {
    raw(line, "{\"intValue\":\"");
    number(line, value);
    raw(line, "\"}}");
}
