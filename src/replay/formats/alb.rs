//! The access log of AWS's Application Load Balancer.

use std::time::Duration;

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

/// `https 2026-11-21T07:58:52.123456Z app/web/50dc 198.51.100.7:2817 10.0.0.1:80 0.001 0.010 0.000 200 200 34 366 "GET
/// https://example.com:443/ HTTP/1.1" "curl/8" ...`. The moment is that of the answer. Times are -1 where a target did
/// not answer.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    let mut line = Scanner::new(line);
    if !KINDS.contains(&line.text_word()?) {
        return None;
    }
    let end = time::of_rfc3339(line.text_word()?)?;
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
    let Some((method, target)) = request_line::read(&request) else { return Some(LogLine::NoRequest) };
    let mut logged = LoggedRequest::new(time::before(end, duration), client, method, target).answered_with(status);
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
