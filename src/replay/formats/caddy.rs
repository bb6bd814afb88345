//! Caddy's access log, in JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use http::Method;
use serde::Deserialize;

use super::LogLine;
use crate::replay::formats::scanner;
use crate::replay::{LoggedHeader, LoggedRequest, LoggedValue};
use crate::rules::client::forwarded;
use crate::wire::head::FieldName;

#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    ts: Moment<'l>,
    #[serde(borrow)]
    logger: Option<Cow<'l, str>>,
    #[serde(borrow)]
    request: Option<Request<'l>>,
    status: Option<u16>,
    #[serde(borrow)]
    duration: Option<Span<'l>>,
    #[serde(borrow)]
    resp_headers: Option<Headers<'l>>,
}

#[derive(Deserialize)]
struct Request<'l> {
    #[serde(borrow)]
    client_ip: Option<Cow<'l, str>>,
    #[serde(borrow)]
    remote_ip: Option<Cow<'l, str>>,
    /// With a port; before Caddy 2.5.
    #[serde(borrow)]
    remote_addr: Option<Cow<'l, str>>,
    #[serde(borrow)]
    method: Cow<'l, str>,
    #[serde(borrow)]
    host: Option<Cow<'l, str>>,
    #[serde(borrow)]
    uri: Cow<'l, str>,
    #[serde(borrow)]
    headers: Option<Headers<'l>>,
}

type Headers<'l> = BTreeMap<Cow<'l, str>, Vec<Cow<'l, str>>>;

/// The time since 1970, or text where `time_format` says so.
#[derive(Deserialize)]
#[serde(untagged)]
enum Moment<'l> {
    Number(f64),
    #[serde(borrow)]
    Text(Cow<'l, str>),
}

/// Seconds, or text where `duration_format` says so.
#[derive(Deserialize)]
#[serde(untagged)]
enum Span<'l> {
    Seconds(f64),
    #[serde(borrow)]
    Text(Cow<'l, str>),
}

/// A line is written when its request has ended.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    if line.first() != Some(&b'{') {
        return None;
    }
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let end = match &line.ts {
        Moment::Number(number) => scanner::of_number(*number)?,
        Moment::Text(text) => scanner::of_text(text)?,
    };
    if line.logger.as_ref().is_some_and(|logger| logger.starts_with("http.log.error")) {
        // The access log has the same request.
        return Some(LogLine::NoRequest);
    }
    let (Some(request), Some(status)) = (line.request, line.status) else {
        // The same file may hold the messages of other parts of Caddy.
        return line.logger.map(|_| LogLine::NoRequest);
    };
    let client = client(&request)?;
    let Ok(method) = Method::from_bytes(request.method.as_bytes()) else { return Some(LogLine::NoRequest) };
    let duration = line.duration.and_then(|span| match span {
        Span::Seconds(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Span::Text(text) => go_duration(&text),
    });
    let mut logged = LoggedRequest::new(scanner::before(end, duration), client, method, &request.uri);
    logged.duration = duration;
    if let Some(host) = request.host {
        logged.host = Some(host.into());
    }
    if let Some(sent) = &request.headers {
        logged.has_all_headers = true;
        logged.headers = headers(sent);
    }
    if let Some(sent) = &line.resp_headers {
        logged.answer_headers = headers(sent);
    }
    Some(LogLine::Request(logged.answered_with(status)))
}

fn client(request: &Request<'_>) -> Option<IpAddr> {
    let named = request.client_ip.as_ref().or(request.remote_ip.as_ref()).or(request.remote_addr.as_ref())?;
    forwarded::address(named.as_bytes())
}

fn headers(sent: &Headers<'_>) -> Vec<LoggedHeader> {
    let named = sent.iter().filter_map(|(name, values)| Some((name.parse::<FieldName>().ok()?, values)));
    let lines = named.flat_map(|(name, values)| values.iter().map(move |value| (name.clone(), value)));
    lines.map(|(name, value)| LoggedHeader::new(name, logged_value(value))).collect()
}

/// Caddy hides credentials by default.
fn logged_value(value: &str) -> LoggedValue {
    if value == "REDACTED" { LoggedValue::Hidden } else { LoggedValue::Sent(value.as_bytes().into()) }
}

/// `1.5ms`, `2m3.5s`, as Go writes durations.
fn go_duration(text: &str) -> Option<Duration> {
    let (mut total, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() {
        let number = rest.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))?;
        let (value, unit) = rest.split_at(number);
        let end = unit.find(|letter: char| letter.is_ascii_digit()).unwrap_or(unit.len());
        let seconds = match &unit[..end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(value.parse::<f64>().ok()? * seconds).ok()?)?;
        rest = &unit[end..];
    }
    Some(total)
}
