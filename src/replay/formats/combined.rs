//! The common and the combined log format, as nginx and Apache write them. What follows the combined fields is skipped.

use std::net::{IpAddr, Ipv6Addr};

use http::Method;
use memchr::memchr;

use super::LogLine;
use super::scanner::Scanner;
use crate::replay::formats::scanner;
use crate::replay::{LoggedHeader, LoggedRequest, LoggedValue};
use crate::rules::client::forwarded;
use crate::wire::head::KnownName;

/// `198.51.100.7 - alice [21/Nov/2026:07:58:52 +0000] "GET /a?b=c HTTP/1.1" 200 612 "-" "curl/8.5.0"`, the last two
/// fields only in the combined format. Apache's `vhost_combined` has `example.com:443` before it.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    read_before(&mut Scanner::new(line))
}

/// Reads these fields, and leaves the rest to the caller.
pub(super) fn read_before(line: &mut Scanner<'_>) -> Option<LogLine> {
    let (host, client) = host_and_client(line)?;
    // The name of a user may hold spaces.
    line.until(b'[')?;
    let started = scanner::of_common_log(line.until(b']')?)?;
    line.skip(b" ")?;
    let request = line.quoted()?;
    let status: u16 = match line.text_word()? {
        // HAProxy's word for a client that left.
        "-1" => 0,
        status => status.parse().ok()?,
    };
    line.word()?;
    let Some((method, target)) = read_request_line(&request) else { return Some(LogLine::NoRequest) };
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

/// The host, where the line begins with one, and the client.
fn host_and_client<'l>(line: &mut Scanner<'l>) -> Option<(Option<&'l str>, IpAddr)> {
    let first = line.text_word()?;
    if let Ok(client) = first.parse() {
        return Some((None, client));
    }
    let mut after = *line;
    let second = after.text_word().and_then(|second| forwarded::address(second.as_bytes()));
    match second {
        Some(client) if first == "-" || is_host(first) => {
            *line = after;
            // `-`: no host was sent.
            Some(((first != "-").then_some(first), client))
        }
        // With a port, or with a zone.
        _ => Some((None, forwarded::address(first.as_bytes())?)),
    }
}

/// Whether a line begins with a list of addresses, as a forwarding header has them. Which of them is the client depends
/// on the proxies that are trusted, and on the peer, which the line does not name.
pub(in crate::replay) fn begins_with_addresses(line: &str) -> bool {
    let first = line.trim_start_matches('"').split_once(',').map(|(first, _)| first.trim());
    first.is_some_and(|first| forwarded::address(first.as_bytes()).is_some())
}

/// A name or an address, with a port or without.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (text, "0"),
    };
    let is_address = || host.strip_prefix('[').and_then(|host| host.strip_suffix(']')?.parse::<Ipv6Addr>().ok());
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && host.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    port.parse::<u16>().is_ok() && (is_name || is_address().is_some())
}

/// `-` stands for a header that was not sent.
pub(super) fn logged_value(value: &[u8]) -> LoggedValue {
    if value == b"-" { LoggedValue::NotSent } else { LoggedValue::Sent(value.into()) }
}

/// The method and the target of a request line. `None`: it is no request of HTTP/1 or later, so no rule has seen it.
pub(super) fn read_request_line(line: &[u8]) -> Option<(Method, &str)> {
    let line = str::from_utf8(line).ok()?;
    let (method, rest) = line.split_once(' ')?;
    let (target, version) = rest.rsplit_once(' ')?;
    if !version.starts_with("HTTP/") || target.is_empty() || target.contains(' ') {
        return None;
    }
    Some((Method::from_bytes(method.as_bytes()).ok()?, target))
}

/// `[21/Nov/2026:07:58:52 +0000] - 200 200 - GET https example.com "/a" [Client 198.51.100.7] [Length 612] [Gzip -]
/// [Sent-to 10.0.0.5] "curl/8" "-"`, or without the cache, the upstream's statuses and its address.
pub(super) fn read_npm(line: &[u8]) -> Option<LogLine> {
    let mut line = Scanner::new(line);
    line.skip(b"[")?;
    let started = scanner::of_common_log(line.until(b']')?)?;
    let at = memchr(b'"', line.rest)?;
    let words = str::from_utf8(&line.rest[..at]).ok()?;
    line.rest = &line.rest[at..];
    // From the end: of several servers that were tried, there are several statuses.
    let mut words = words.split_ascii_whitespace().rev();
    let (host, _scheme, method) = (words.next()?, words.next()?, words.next()?);
    if words.next()? != "-" {
        return None;
    }
    let status: u16 = words.next()?.parse().ok()?;
    let target = line.quoted()?;
    line.skip(b"[Client ")?;
    let client = forwarded::address(line.until(b']')?)?;
    let at = memchr(b'"', line.rest)?;
    line.rest = &line.rest[at..];
    let (user_agent, referer) = (line.quoted()?, line.quoted()?);
    let (Ok(method), Ok(target)) = (Method::from_bytes(method.as_bytes()), str::from_utf8(&target)) else {
        return Some(LogLine::NoRequest);
    };
    // A line without a request has no target.
    if target.is_empty() || target == "-" {
        return Some(LogLine::NoRequest);
    }
    let mut logged = LoggedRequest::new(started, client, method, target).answered_with(status);
    if host != "-" {
        logged.host = Some(host.into());
    }
    logged.headers = [(KnownName::REFERER, referer), (KnownName::USER_AGENT, user_agent)]
        .map(|(name, value)| LoggedHeader::new(name, logged_value(&value)))
        .into();
    Some(LogLine::Request(logged))
}
