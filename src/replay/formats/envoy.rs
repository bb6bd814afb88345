//! Envoy's access log in its default format.

use std::time::Duration;

use memchr::memmem;

use super::LogLine;
use super::request_line;
use super::scanner::Scanner;
use super::time;
use crate::client::forwarded;
use crate::head::KnownName;
use crate::replay::AnsweredBy;
use crate::replay::LoggedHeader;
use crate::replay::LoggedRequest;
use crate::replay::LoggedValue;

/// `[2026-11-21T07:58:52.123Z] "GET /a?b HTTP/1.1" 200 - 0 154 12 11 "198.51.100.7" "curl/8" "4f" "example.com"
/// "10.0.0.5:80"`. The client is the last address of X-Forwarded-For, the one that Envoy itself or the proxy before it
/// added: whatever stands before it, the client may have written. Envoy escapes nothing, so that a user agent may have
/// quotation marks: what follows it is read from the end.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    let mut line = Scanner::new(line);
    line.skip(b"[")?;
    let started = time::of_rfc3339(str::from_utf8(line.until(b']')?).ok()?)?;
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
    let Some((method, target)) = request_line::read(request) else { return Some(LogLine::NoRequest) };
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
