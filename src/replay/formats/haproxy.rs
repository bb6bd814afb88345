//! HAProxy's HTTP log (`option httplog` and `option httpslog`), with the prefix that syslog adds or without.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use memchr::{memchr, memmem};

use super::LogLine;
use super::scanner::{Scanner, hex};
use crate::replay::LoggedRequest;
use crate::replay::formats::{combined, scanner};
use crate::rules::client::forwarded;
use crate::words::clock::Timestamp;

/// `10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0
/// {1wt.eu} {} "GET /index.html HTTP/1.1"`. The moment is the arrival of the request's first byte, in the server's
/// zone, which the log does not name: it is read as UTC. Captured headers have no names, so they are skipped.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    let (client, moment, rest) = start(line)?;
    let mut line = Scanner::new(rest);
    line.skip(b" ")?;
    line.word()?;
    // `backend/server`
    memchr(b'/', line.word()?)?;
    let timers = line.text_word()?;
    let status: i32 = line.text_word()?.parse().ok()?;
    // Bytes, cookies, state, connections, queues.
    for _ in 0..6 {
        line.word()?;
    }
    while line.rest.starts_with(b"{") {
        line.until(b'}')?;
        line.rest = line.rest.strip_prefix(b" ").unwrap_or(line.rest);
    }
    line.skip(b"\"")?;
    // A line that was cut at its end has no closing mark.
    let end = memchr(b'"', line.rest).unwrap_or(line.rest.len());
    let request = decoded(&line.rest[..end]);
    let Some((method, target)) = combined::read_request_line(&request) else { return Some(LogLine::NoRequest) };
    let mut request = LoggedRequest::new(moment, client, method, target);
    request.duration = u64::try_from(total_millis(timers)?).ok().map(Duration::from_millis);
    Some(LogLine::Request(request.answered_with(u16::try_from(status).unwrap_or(0))))
}

/// The client and the moment, at any position in the line, and the rest.
fn start(line: &[u8]) -> Option<(IpAddr, Timestamp, &[u8])> {
    memmem::find_iter(line, b" [").find_map(|at| {
        let client = line[..at].rsplit(|byte| *byte == b' ').next()?;
        let (address, port) = str::from_utf8(client).ok()?.rsplit_once(':')?;
        port.parse::<u16>().ok()?;
        let client = forwarded::address(address.as_bytes())?;
        let rest = &line[at + 2..];
        let end = memchr(b']', rest)?;
        Some((client, scanner::of_common_log(&rest[..end])?, &rest[end + 1..]))
    })
}

/// The last of `TR/Tw/Tc/Tr/Ta`, in milliseconds, with `+` before it where it was logged before the end; -1 where the
/// connection was aborted.
fn total_millis(timers: &str) -> Option<i64> {
    let (_, total) = timers.rsplit_once('/')?;
    total.strip_prefix('+').unwrap_or(total).parse().ok()
}

/// `#22` stands for a quotation mark, and so on.
pub(super) fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'#', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'#', rest) {
        plain.extend_from_slice(&rest[..at]);
        rest = match &rest[at + 1..] {
            [high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                plain.push(hex(*high) << 4 | hex(*low));
                after
            }
            after => {
                plain.push(b'#');
                after
            }
        };
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

/// `198.51.100.7 - - [21/Nov/2026:07:58:52 +0000] "GET / HTTP/1.1" 200 612 "" "" 33317 123 "fe" "be" "s1" 0 0 1 4 5
/// "----" 1 1 0 0 0 0 0 "" "" "" ""`. The moment is the arrival of the request's first byte. The empty fields stand for
/// headers that HAProxy does not log; captured headers have no names, so they are skipped.
pub(super) fn read_clf(line: &[u8]) -> Option<LogLine> {
    let mut line = Scanner::new(line);
    let read = combined::read_before(&mut line)?;
    if read == LogLine::NoRequest {
        // Its empty fields were not read.
        line.quoted()?;
        line.quoted()?;
    }
    line.text_word()?.parse::<u16>().ok()?;
    let millis: u64 = line.text_word()?.parse().ok().filter(|millis| *millis < 1000)?;
    // Frontend, backend and server.
    for _ in 0..3 {
        line.quoted()?;
    }
    // TR, Tw, Tc and Tr.
    for _ in 0..4 {
        line.text_word()?.parse::<i64>().ok()?;
    }
    let total: i64 = line.text_word()?.trim_start_matches('+').parse().ok()?;
    // The state of the session tells this form from others.
    line.quoted().filter(|state| state.len() == 4)?;
    let LogLine::Request(mut request) = read else { return Some(read) };
    request.started = request.started + Duration::from_millis(millis);
    request.duration = u64::try_from(total).ok().map(Duration::from_millis);
    request.headers.clear();
    if let Ok(target) = str::from_utf8(&decoded(request.target.as_bytes())) {
        request.target = target.into();
    }
    Some(LogLine::Request(request))
}
