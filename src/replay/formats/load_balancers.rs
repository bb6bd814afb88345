//! The access logs of Envoy, in its default format, and of AWS's Application Load Balancer.

use std::time::Duration;

use memchr::memmem;

use super::LogLine;
use super::scanner::Scanner;
use crate::replay::formats::{combined, scanner};
use crate::replay::{AnsweredBy, LoggedHeader, LoggedRequest, LoggedValue};
use crate::rules::client::forwarded;
use crate::wire::head::KnownName;

/// `[2026-11-21T07:58:52.123Z] "GET /a?b HTTP/1.1" 200 - 0 154 12 11 "198.51.100.7" "curl/8" "4f" "example.com"
/// "10.0.0.5:80"`. The client is the last address of X-Forwarded-For, the one that Envoy itself or the proxy before it
/// added: the client may have written all earlier addresses. Envoy escapes nothing, so a user agent may have quotation
/// marks: the fields after it are read from the end.
pub(super) fn read_envoy(line: &[u8]) -> Option<LogLine> {
    let mut line = Scanner::new(line);
    line.skip(b"[")?;
    let started = scanner::of_rfc3339(str::from_utf8(line.until(b']')?).ok()?)?;
    line.skip(b" \"")?;
    let end = memmem::find(line.rest, b"\" ")?;
    let request = &line.rest[..end];
    line.rest = &line.rest[end + 2..];
    let status: u16 = line.text_word()?.parse().ok()?;
    line.word()?;
    for _ in 0..2 {
        line.text_word()?.parse::<u64>().ok()?;
    }
    let duration: u64 = line.text_word()?.parse().ok()?;
    line.word()?;
    let [forwarded_for, user_agent, _id, authority, upstream] = last_fields(line.rest)?;
    let Some((method, target)) = combined::read_request_line(request) else { return Some(LogLine::NoRequest) };
    let client = forwarded::address(forwarded_for.rsplit(',').next()?.trim().as_bytes())?;
    let mut logged = LoggedRequest::new(started, client, method, target).answered_with(status);
    logged.duration = Some(Duration::from_millis(duration));
    if authority != "-" {
        logged.host = Some(authority.into());
    }
    if upstream == "-" && status >= 500 {
        logged.answered_by = AnsweredBy::NoApplication;
    }
    let user_agent = match user_agent {
        "-" => LoggedValue::NotSent,
        sent => LoggedValue::Sent(sent.as_bytes().into()),
    };
    logged.headers = vec![LoggedHeader::new(KnownName::USER_AGENT, user_agent)];
    Some(LogLine::Request(logged))
}

/// X-Forwarded-For, user agent, request id, authority and upstream.
fn last_fields(text: &[u8]) -> Option<[&str; 5]> {
    let text = str::from_utf8(text).ok()?.strip_prefix('"')?.trim_end().strip_suffix('"')?;
    let (forwarded_for, rest) = text.split_once(SEPARATOR)?;
    let (rest, upstream) = rest.rsplit_once(SEPARATOR)?;
    let (rest, authority) = rest.rsplit_once(SEPARATOR)?;
    let (user_agent, id) = rest.rsplit_once(SEPARATOR)?;
    Some([forwarded_for, user_agent, id, authority, upstream])
}

const SEPARATOR: &str = "\" \"";

// AWS's Application Load Balancer.

/// `https 2026-11-21T07:58:52.123456Z app/web/50dc 198.51.100.7:2817 10.0.0.1:80 0.001 0.010 0.000 200 200 34 366 "GET
/// https://example.com:443/ HTTP/1.1" "curl/8" ...`. The moment is the time of the answer. Times are -1 if a target did
/// not answer.
pub(super) fn read_alb(line: &[u8]) -> Option<LogLine> {
    let mut line = Scanner::new(line);
    if !KINDS.contains(&line.text_word()?) {
        return None;
    }
    let end = scanner::of_rfc3339(line.text_word()?)?;
    line.word()?;
    let client = forwarded::address(line.word()?)?;
    line.word()?;
    let mut duration = Some(Duration::ZERO);
    for _ in 0..3 {
        let seconds: f64 = line.text_word()?.parse().ok()?;
        duration = duration.zip(Duration::try_from_secs_f64(seconds).ok()).map(|(all, part)| all + part);
    }
    // `-`: the client left.
    let status = line.text_word()?.parse().unwrap_or(0);
    let is_answered_by_target = line.word()? != b"-";
    for _ in 0..2 {
        line.word()?;
    }
    let request = line.quoted()?;
    let user_agent = line.quoted()?;
    let Some((method, target)) = combined::read_request_line(&request) else { return Some(LogLine::NoRequest) };
    let mut logged = LoggedRequest::new(scanner::before(end, duration), client, method, target).answered_with(status);
    logged.duration = duration;
    match status {
        CLIENT_LEFT => logged.answered_by = AnsweredBy::Unknown,
        500.. if !is_answered_by_target => logged.answered_by = AnsweredBy::NoApplication,
        _ => {}
    }
    let user_agent = match &*user_agent {
        b"-" => LoggedValue::NotSent,
        sent => LoggedValue::Sent(sent.into()),
    };
    logged.headers = vec![LoggedHeader::new(KnownName::USER_AGENT, user_agent)];
    Some(LogLine::Request(logged))
}

const KINDS: [&str; 6] = ["http", "https", "h2", "grpcs", "ws", "wss"];

const CLIENT_LEFT: u16 = 460;
