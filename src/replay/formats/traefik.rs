//! Traefik's access log in JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::LogLine;
use super::time;
use crate::client::forwarded;
use crate::head::FieldName;
use crate::replay::LoggedHeader;
use crate::replay::LoggedRequest;
use crate::replay::LoggedValue;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Line<'l> {
    #[serde(borrow)]
    client_host: Cow<'l, str>,
    #[serde(borrow, rename = "StartUTC")]
    start_utc: Option<Cow<'l, str>>,
    #[serde(borrow)]
    start_local: Option<Cow<'l, str>>,
    #[serde(borrow)]
    request_method: Cow<'l, str>,
    #[serde(borrow)]
    request_path: Cow<'l, str>,
    #[serde(borrow)]
    request_host: Option<Cow<'l, str>>,
    downstream_status: Option<u16>,
    origin_status: Option<u16>,
    /// In nanoseconds.
    duration: Option<u64>,
    /// Among others the headers, where Traefik is told to log them.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    if line.first() != Some(&b'{') {
        return None;
    }
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let started = time::of_rfc3339(line.start_utc.as_ref().or(line.start_local.as_ref())?)?;
    let client = forwarded::address(line.client_host.as_bytes())?;
    let Ok(method) = Method::from_bytes(line.request_method.as_bytes()) else { return Some(LogLine::NoRequest) };
    let mut logged = LoggedRequest::new(started, client, method, &line.request_path);
    logged.duration = line.duration.map(Duration::from_nanos);
    if let Some(host) = line.request_host.filter(|host| *host != "-") {
        logged.host = Some(host.into());
    }
    logged.headers = headers(&line.more, "request_");
    logged.answer_headers = headers(&line.more, "downstream_");
    Some(LogLine::Request(logged.answered_with(line.downstream_status.or(line.origin_status).unwrap_or(0))))
}

fn headers(more: &BTreeMap<String, Value>, prefix: &str) -> Vec<LoggedHeader> {
    let named = more.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix(prefix)?.parse::<FieldName>().ok()?;
        let value = value.as_str()?;
        let value = if value == "REDACTED" { LoggedValue::Hidden } else { LoggedValue::Sent(value.as_bytes().into()) };
        Some(LoggedHeader::new(name, value))
    });
    named.collect()
}
