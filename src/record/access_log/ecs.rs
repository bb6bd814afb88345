//! Lines in the Elastic Common Schema.

use super::LineContext;
use super::fields;
use super::fields::FieldValue;
use super::message::message;
use super::value::common_value;
use super::value::names;
use super::value::split_port;
use super::value::version_number;
use crate::clock::Timestamp;
use crate::record::DecisionLabel;
use crate::record::RequestRecord;
use crate::record::line::ECS_VERSION;
use crate::record::line::number;
use crate::record::line::quoted;
use crate::record::line::raw;
use crate::record::line::time;

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
    fields::each(request, context, |name, value| match value {
        FieldValue::Unknown => {}
        FieldValue::ShadowLimits(request, context) => {
            if context.shadow_limits(request).next().is_some() {
                raw(line, name.ecs);
                names(line, context.shadow_limits(request));
            }
        }
        FieldValue::Protocol(version) => {
            raw(line, name.ecs);
            quoted(line, version_number(version));
        }
        FieldValue::Host(host) => {
            let (domain, port) = split_port(host);
            raw(line, name.ecs);
            quoted(line, domain);
            if let Some(port) = port {
                raw(line, ",\"url.port\":");
                number(line, port.into());
            }
        }
        FieldValue::Span(span) => {
            raw(line, name.ecs);
            number(line, u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        }
        value => {
            raw(line, name.ecs);
            common_value(line, value);
        }
    });
    raw(line, "}\n");
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
