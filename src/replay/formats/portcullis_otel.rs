//! Our own request log in the format `otel`: a `LogRecord` of OpenTelemetry in each line.

use std::borrow::Cow;

use serde::Deserialize;

use super::LogLine;
use super::portcullis::Line;
use crate::clock::Timestamp;
use crate::head::KnownName;
use crate::replay::LoggedHeader;
use crate::replay::LoggedValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogRecord<'l> {
    #[serde(borrow)]
    time_unix_nano: Cow<'l, str>,
    #[serde(borrow)]
    attributes: Vec<Attribute<'l>>,
}

#[derive(Deserialize)]
struct Attribute<'l> {
    #[serde(borrow)]
    key: Cow<'l, str>,
    #[serde(borrow)]
    value: AnyValue<'l>,
}

#[derive(Deserialize)]
struct AnyValue<'l> {
    #[serde(borrow, rename = "stringValue")]
    text: Option<Cow<'l, str>>,
    /// As text, because JSON numbers need not hold 64 bits.
    #[serde(borrow, rename = "intValue")]
    integer: Option<Cow<'l, str>>,
    #[serde(rename = "doubleValue")]
    float: Option<f64>,
}

pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    if line.first() != Some(&b'{') {
        return None;
    }
    let record: LogRecord<'_> = serde_json::from_slice(line).ok()?;
    let nanos: u64 = record.time_unix_nano.parse().ok()?;
    let mut line = Line::default();
    let mut user_agent = LoggedValue::NotSent;
    for Attribute { key, value } in record.attributes {
        let text = value.text;
        let number = value.integer.and_then(|number| number.parse().ok());
        match &*key {
            "client.address" => line.client = text.unwrap_or_default(),
            "network.protocol.version" => line.protocol = text,
            "http.request.method" => line.method = text.unwrap_or_default(),
            "server.address" => line.host = text.unwrap_or_default(),
            "server.port" => line.port = number,
            "url.path" => line.path = text.unwrap_or_default(),
            "url.query" => line.query = text,
            "user_agent.original" => {
                user_agent = LoggedValue::Sent(text.unwrap_or_default().as_bytes().into());
            }
            "portcullis.decision" => line.decision = text.unwrap_or_default(),
            "http.response.status_code" => line.status = number,
            "portcullis.outcome" => line.outcome = text,
            "portcullis.upstream" => line.upstream = text,
            "portcullis.duration_ms" => line.duration_ms = value.float,
            _ => {}
        }
    }
    let mut read = line.read(Timestamp::from_micros(nanos / 1000))?;
    if let LogLine::Request(request) = &mut read {
        request.headers = vec![LoggedHeader::new(KnownName::USER_AGENT, user_agent)];
    }
    Some(read)
}
