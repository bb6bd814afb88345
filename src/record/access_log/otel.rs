//! Lines in the log data model of OpenTelemetry. Each line is a `LogRecord` in OTLP's JSON.

use super::LineContext;
use super::fields;
use super::fields::FieldFormat;
use super::fields::FieldName;
use super::fields::FieldStart;
use super::fields::FieldValue;
use super::message::message;
use super::value::put_usual;
use super::value::split_port;
use super::value::version_number;
use crate::clock::Timestamp;
use crate::digits::push_decimal;
use crate::record::RequestRecord;
use crate::record::line::millis;
use crate::record::line::nanos;
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
