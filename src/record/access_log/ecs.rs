//! Lines in the Elastic Common Schema.

use super::fields::{FieldFormat, FieldName, FieldStart, FieldValue};
use super::{LineContext, fields};
use crate::record::access_log::write::{message, names, put_usual, split_port, version_number};
use crate::record::line::{raw, time};
use crate::record::sinks::ECS_VERSION;
use crate::record::{DecisionLabel, RequestRecord};
use crate::words::clock::Timestamp;
use crate::words::digits::push_decimal;

/// Unknown fields are left out.
pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
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
        DecisionLabel::Allowed | DecisionLabel::Delayed => "allowed",
        DecisionLabel::Error => "error",
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
