//! Lines in the words of the Elastic Common Schema.

use http::Version;

use super::Named;
use super::fields;
use super::fields::Value;
use super::json::names;
use super::json::plain;
use super::sentence;
use super::shadow;
use crate::clock::Timestamp;
use crate::record::DecisionLabel;
use crate::record::RequestRecord;
use crate::record::line::ECS_VERSION;
use crate::record::line::number;
use crate::record::line::quoted;
use crate::record::line::raw;
use crate::record::line::time;

/// What is unknown is left out.
pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, named: &Named<'_>) {
    raw(line, "{\"@timestamp\":\"");
    time(line, at);
    raw(line, "\",\"log.level\":\"info\",\"message\":\"");
    sentence(line, request);
    raw(line, "\",\"ecs.version\":\"");
    raw(line, ECS_VERSION);
    raw(line, "\",\"service.name\":\"portcullis\",\"event.dataset\":\"portcullis.requests\",\"event.kind\":\"event\"");
    raw(line, ",\"event.category\":[\"web\"],\"event.type\":[\"access\",\"");
    raw(line, kind(request.decision));
    raw(line, "\"],\"event.outcome\":\"");
    raw(line, outcome(request));
    line.push(b'"');
    fields::each(request, named, |name, value| match value {
        Value::Unknown => {}
        Value::Shadows(request, named) => {
            if shadow(request, named).next().is_some() {
                raw(line, name.ecs);
                names(line, shadow(request, named));
            }
        }
        Value::Protocol(version) => {
            raw(line, name.ecs);
            quoted(line, number_of(version));
        }
        Value::Host(host) => {
            let (domain, port) = apart(host);
            raw(line, name.ecs);
            quoted(line, domain);
            if let Some(port) = port {
                raw(line, ",\"url.port\":");
                number(line, port.into());
            }
        }
        Value::Span(span) => {
            raw(line, name.ecs);
            number(line, u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        }
        value => {
            raw(line, name.ecs);
            plain(line, value);
        }
    });
    raw(line, "}\n");
}

fn kind(decision: DecisionLabel) -> &'static str {
    match decision {
        DecisionLabel::Allowed | DecisionLabel::Delayed => "allowed",
        DecisionLabel::Error => "error",
        _ => "denied",
    }
}

fn outcome(request: &RequestRecord<'_>) -> &'static str {
    match request.status {
        None => "unknown",
        Some(status) if status.is_client_error() || status.is_server_error() => "failure",
        Some(_) => "success",
    }
}

/// `1.1`, `2`: both schemas have the name apart.
pub(super) fn number_of(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

/// A host and its port, where it has one.
pub(super) fn apart(host: &str) -> (&str, Option<u16>) {
    let split = host.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    // The last piece of an address in brackets is no port.
    split.filter(|_| !host.ends_with(']')).map_or((host, None), |(name, port)| (name, Some(port)))
}
