//! HAProxy's form of the common log (`option httplog clf`).

use std::time::Duration;

use super::LogLine;
use super::combined;
use super::haproxy;
use super::scanner::Scanner;

/// `198.51.100.7 - - [21/Nov/2026:07:58:52 +0000] "GET / HTTP/1.1" 200 612 "" "" 33317 123 "fe" "be" "s1" 0 0 1 4 5
/// "----" 1 1 0 0 0 0 0 "" "" "" ""`. The moment is that of the request's first byte. The empty fields stand for
/// headers that HAProxy does not log; captured ones have no names, so they are skipped.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
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
    if let Ok(target) = str::from_utf8(&haproxy::decoded(request.target.as_bytes())) {
        request.target = target.into();
    }
    Some(LogLine::Request(request))
}
