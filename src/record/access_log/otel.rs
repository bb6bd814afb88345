//! Lines in the log data model of OpenTelemetry. Each line is a `LogRecord` in OTLP's JSON.

use super::LineContext;
use super::fields;
use super::fields::FieldValue;
use super::message::message;
use super::value::common_value;
use super::value::split_port;
use super::value::version_number;
use crate::clock::Timestamp;
use crate::record::RequestRecord;
use crate::record::line::millis;
use crate::record::line::nanos;
use crate::record::line::number;
use crate::record::line::quoted;
use crate::record::line::raw;

/// Unknown fields are left out.
pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    raw(line, "{\"timeUnixNano\":");
    nanos(line, at);
    raw(line, ",\"severityNumber\":9,\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"");
    message(line, request);
    raw(line, "\"}");
    if let Some(id) = request.trace {
        raw(line, ",\"traceId\":");
        quoted(line, id.as_str());
    }
    raw(line, ",\"attributes\":[{\"key\":\"network.protocol.name\",\"value\":{\"stringValue\":\"http\"}}");
    fields::each(request, context, |name, value| match value {
        // A `LogRecord` has a field of its own for the trace.
        FieldValue::Unknown | FieldValue::Trace(_) => {}
        FieldValue::ShadowLimits(request, context) => {
            if context.shadow_limits(request).next().is_none() {
                return;
            }
            raw(line, name.otel);
            raw(line, "{\"arrayValue\":{\"values\":[");
            for (position, limit) in context.shadow_limits(request).enumerate() {
                raw(line, if position > 0 { ",{\"stringValue\":" } else { "{\"stringValue\":" });
                quoted(line, limit);
                line.push(b'}');
            }
            raw(line, "]}}}");
        }
        FieldValue::Number(value) => {
            raw(line, name.otel);
            integer(line, value);
        }
        FieldValue::Span(span) => {
            raw(line, name.otel);
            raw(line, "{\"doubleValue\":");
            millis(line, span);
            raw(line, "}}");
        }
        FieldValue::Host(host) => {
            let (name_of_host, port) = split_port(host);
            raw(line, name.otel);
            text(line, FieldValue::Text(name_of_host));
            if let Some(port) = port {
                raw(line, ",{\"key\":\"server.port\",\"value\":");
                integer(line, port.into());
            }
        }
        FieldValue::Protocol(version) => {
            raw(line, name.otel);
            text(line, FieldValue::Text(version_number(version)));
        }
        value => {
            raw(line, name.otel);
            text(line, value);
        }
    });
    raw(line, "]}\n");
}

/// A value that is a string in JSON.
fn text(line: &mut Vec<u8>, value: FieldValue<'_>) {
    raw(line, "{\"stringValue\":");
    common_value(line, value);
    raw(line, "}}");
}

/// OTLP writes integers as text, because JSON numbers need not hold 64 bits.
fn integer(line: &mut Vec<u8>, value: u64) {
    raw(line, "{\"intValue\":\"");
    number(line, value);
    raw(line, "\"}}");
}
