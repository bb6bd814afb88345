//! The log of Nginx Proxy Manager.

use http::Method;
use memchr::memchr;

use super::LogLine;
use super::combined;
use super::scanner::Scanner;
use super::time;
use crate::client::forwarded;
use crate::head::KnownName;
use crate::replay::LoggedHeader;
use crate::replay::LoggedRequest;

/// `[21/Nov/2026:07:58:52 +0000] - 200 200 - GET https example.com "/a" [Client 198.51.100.7] [Length 612] [Gzip -]
/// [Sent-to 10.0.0.5] "curl/8" "-"`, or without the cache, the upstream's statuses and its address.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    let mut line = Scanner::new(line);
    line.skip(b"[")?;
    let started = time::of_common_log(line.until(b']')?)?;
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
    // What is no request has no target.
    if target.is_empty() || target == "-" {
        return Some(LogLine::NoRequest);
    }
    let mut logged = LoggedRequest::new(started, client, method, target).answered_with(status);
    if host != "-" {
        logged.host = Some(host.into());
    }
    logged.headers = [(KnownName::REFERER, referer), (KnownName::USER_AGENT, user_agent)]
        .map(|(name, value)| LoggedHeader::new(name, combined::logged_value(&value)))
        .into();
    Some(LogLine::Request(logged))
}
