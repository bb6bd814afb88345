//! Traefik's access log in JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use memchr::memrchr;
use serde::Deserialize;
use serde_json::Value;

use super::LogLine;
use crate::replay::formats::scanner::Scanner;
use crate::replay::formats::{combined, scanner};
use crate::replay::{LoggedHeader, LoggedRequest, LoggedValue};
use crate::rules::client::forwarded;
use crate::wire::head::{FieldName, KnownName};

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
    /// Other fields, such as headers if Traefik is configured to log them.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    if line.first() != Some(&b'{') {
        return None;
    }
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let started = scanner::of_rfc3339(line.start_utc.as_ref().or(line.start_local.as_ref())?)?;
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

/// `... "curl/8.5.0" 4711 "web@docker" "http://10.0.0.5:80" 3ms` after the fields of the combined format. A router or a server that
/// there is none of is `-`. Traefik escapes nothing, so that a user agent may have quotation marks: the line is read from its end
/// up to there.
pub(super) fn read_common(line: &[u8]) -> Option<LogLine> {
    let (line, duration) = last_word(line)?;
    let millis: u64 = str::from_utf8(duration).ok()?.strip_suffix("ms")?.parse().ok()?;
    let line = without_last_name(without_last_name(line)?)?;
    let (line, count) = last_word(line)?;
    if !(count == b"-" || count.iter().all(u8::is_ascii_digit)) {
        return None;
    }
    let mut behind = Scanner::new(line);
    let LogLine::Request(mut request) = combined::read_before(&mut behind)? else { return Some(LogLine::NoRequest) };
    if let Some(user_agent) = user_agent_with_quotes(line, behind.rest.len()) {
        request.headers.retain(|header| header.name.as_str() != "user-agent");
        request.headers.push(LoggedHeader::new(KnownName::USER_AGENT, LoggedValue::Sent(user_agent.into())));
    }
    request.duration = Some(Duration::from_millis(millis));
    // Headers stand there as `-` by default, whether or not they were sent.
    request.headers.retain(|header| header.value != LoggedValue::NotSent);
    Some(LogLine::Request(request))
}

// Traefik's common format: the combined one, and what Traefik adds.

/// The text before the last space, and the word after it.
fn last_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memrchr(b' ', line)?;
    Some((&line[..space], &line[space + 1..]))
}

/// The text before the last quoted text, or before a `-` in its place.
fn without_last_name(line: &[u8]) -> Option<&[u8]> {
    match line.strip_suffix(b"\"") {
        Some(text) => text[..memrchr(b'"', text)?].strip_suffix(b" "),
        None => line.strip_suffix(b" -"),
    }
}

/// The user agent at the end of a line, if it has quotation marks: `unread` bytes stand behind the first one.
fn user_agent_with_quotes(line: &[u8], unread: usize) -> Option<&[u8]> {
    if unread == 0 {
        return None;
    }
    let read = line[..line.len() - unread].trim_ascii_end().strip_suffix(b"\"")?;
    line[memrchr(b'"', read)? + 1..].strip_suffix(b"\"")
}
