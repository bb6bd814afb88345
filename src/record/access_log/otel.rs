//! Lines in the log data model of OpenTelemetry. Each line is a `LogRecord` in OTLP's JSON.

use super::fields::{FieldFormat, FieldName, FieldStart, FieldValue};
use super::{LineContext, fields};
use crate::record::RequestRecord;
use crate::record::access_log::write::{message, put_usual, split_port, version_number};
use crate::record::line::{millis, nanos, quoted, raw};
use crate::words::clock::Timestamp;
use crate::words::digits::push_decimal;

/// Unknown fields are left out.
pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
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
