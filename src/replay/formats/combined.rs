//! The common and the combined log format, as nginx and Apache write them. What follows the combined fields is skipped.

use std::net::IpAddr;

use super::LogLine;
use super::request_line;
use super::scanner::Scanner;
use super::time;
use crate::head::KnownName;
use crate::replay::LoggedHeader;
use crate::replay::LoggedRequest;
use crate::replay::LoggedValue;

/// `198.51.100.7 - alice [21/Nov/2026:07:58:52 +0000] "GET /a?b=c HTTP/1.1" 200 612 "-" "curl/8.5.0"`, the last two fields
/// only in the combined format. Apache's `vhost_combined` has `example.com:443` before it.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    read_before(&mut Scanner::new(line))
}

/// The same, and leaves what follows to the caller.
pub(super) fn read_before(line: &mut Scanner<'_>) -> Option<LogLine> {
    let first = line.text_word()?;
    let (host, client) = match first.parse::<IpAddr>() {
        Ok(client) => (None, client),
        Err(_) => (Some(first), line.text_word()?.parse().ok()?),
    };
    // The name of a user may hold spaces.
    line.until(b'[')?;
    let started = time::of_common_log(line.until(b']')?)?;
    line.skip(b" ")?;
    let request = line.quoted()?;
    let status: u16 = line.text_word()?.parse().ok()?;
    line.word()?;
    let Some((method, target)) = request_line::read(&request) else { return Some(LogLine::NoRequest) };
    let mut logged = LoggedRequest::new(started, client, method, target).answered_with(status);
    if let Some(host) = host {
        logged.host = Some(host.into());
    }
    let before = *line;
    if let (Some(referer), Some(user_agent)) = (line.quoted(), line.quoted()) {
        logged.headers = [(KnownName::REFERER, referer), (KnownName::USER_AGENT, user_agent)]
            .map(|(name, value)| LoggedHeader::new(name, logged_value(&value)))
            .into();
    } else {
        *line = before;
    }
    Some(LogLine::Request(logged))
}

/// `-` stands for a header that was not sent.
fn logged_value(value: &[u8]) -> LoggedValue {
    if value == b"-" { LoggedValue::NotSent } else { LoggedValue::Sent(value.into()) }
}
