//! Traefik's common format: the combined one, and what Traefik adds.

use std::time::Duration;

use memchr::memrchr;

use super::LogLine;
use super::combined;
use super::scanner::Scanner;
use crate::head::KnownName;
use crate::replay::LoggedHeader;
use crate::replay::LoggedValue;

/// `... "curl/8.5.0" 4711 "web@docker" "http://10.0.0.5:80" 3ms` after the fields of the combined format. A router or a server that
/// there is none of is `-`. Traefik escapes nothing, so that a user agent may have quotation marks: the line is read from its end
/// up to there.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
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

/// What stands before the last space, and the word behind it.
fn last_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memrchr(b' ', line)?;
    Some((&line[..space], &line[space + 1..]))
}

/// What stands before the last text between quotation marks, or before a `-` in its place.
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
