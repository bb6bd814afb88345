//! A line for each request.

use std::cell::RefCell;
use std::io::Write;
use std::time::Duration;

use super::Event;
use super::LogFormat;
use super::Meaning;
use super::recorder::LimitMeter;
use crate::clock::Timestamp;

/// The names an event knows only by position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) route: Option<&'a str>,
    pub(super) upstream: Option<&'a str>,
    /// By `LimitId`.
    pub(super) limits: &'a [LimitMeter],
}

/// Appends the line of one request.
pub(super) fn write(line: &mut Vec<u8>, format: LogFormat, at: Timestamp, event: &Event<'_>, named: &Named<'_>) {
    match format {
        LogFormat::Json => write_json(line, at, event, named),
        LogFormat::Human => write_human(line, at, event, named),
    }
}

/// The fields in the order people look for them. `error` is there only when something went wrong.
fn write_json(line: &mut Vec<u8>, at: Timestamp, event: &Event<'_>, named: &Named<'_>) {
    line.extend_from_slice(b"{\"time\":\"");
    write_time(line, at);
    line.push(b'"');
    field(line, "request_id", Some(event.request_id));
    address(line, "client", event.identity.client.address());
    address(line, "peer", event.identity.peer.address());
    field(line, "method", Some(event.method.as_str()));
    field(line, "host", Some(event.host));
    field(line, "path", Some(event.path));
    field(line, "route", named.route);
    field(line, "decision", Some(event.decision.as_str()));
    field(line, "limit", event.limit);
    field(line, "ban", event.ban);
    name(line, "shadow");
    line.push(b'[');
    for (index, limit) in shadow(event, named).enumerate() {
        if index > 0 {
            line.push(b',');
        }
        quoted(line, limit);
    }
    line.push(b']');
    name(line, "status");
    match event.status {
        Some(status) => line.extend_from_slice(status.as_str().as_bytes()),
        None => line.extend_from_slice(b"null"),
    }
    if let Some(meaning) = event.meaning {
        field(line, "outcome", Some(meaning.as_str()));
    }
    field(line, "upstream", named.upstream);
    field(line, "server", event.forwarded.and_then(|forwarded| forwarded.server));
    name(line, "duration_ms");
    write_millis(line, event.duration);
    number(line, "bytes_in", event.bytes_in);
    number(line, "bytes_out", event.bytes_out);
    if event.error.is_some() {
        field(line, "error", event.error);
    }
    line.extend_from_slice(b"}\n");
}

fn write_human(line: &mut Vec<u8>, at: Timestamp, event: &Event<'_>, named: &Named<'_>) {
    write_time(line, at);
    line.push(b' ');
    put(line, event.identity.client.address());
    for word in [event.method.as_str(), event.host] {
        line.push(b' ');
        plain(line, word);
    }
    plain(line, event.path);
    line.push(b' ');
    plain(line, event.status.as_ref().map_or("-", |status| status.as_str()));
    line.push(b' ');
    plain(line, event.decision.as_str());
    labelled(line, "limit", event.limit);
    labelled(line, "ban", event.ban);
    labelled(line, "outcome", event.meaning.map(Meaning::as_str));
    labelled(line, "route", named.route);
    labelled(line, "upstream", named.upstream);
    labelled(line, "server", event.forwarded.and_then(|forwarded| forwarded.server));
    for limit in shadow(event, named) {
        labelled(line, "shadow", Some(limit));
    }
    line.push(b' ');
    write_millis(line, event.duration);
    line.extend_from_slice(b"ms");
    labelled(line, "id", Some(event.request_id));
    labelled(line, "error", event.error);
    line.push(b'\n');
}

/// Names of the shadow limits that would have denied.
fn shadow<'a>(event: &'a Event<'_>, named: &'a Named<'_>) -> impl Iterator<Item = &'a str> {
    let denied = event.limits.iter().filter(|report| report.shadow && report.denied);
    denied.map(|report| &*named.limits[usize::from(report.limit.0)].name)
}

fn name(line: &mut Vec<u8>, name: &str) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"\":");
}

fn field(line: &mut Vec<u8>, key: &str, value: Option<&str>) {
    name(line, key);
    match value {
        Some(value) => quoted(line, value),
        None => line.extend_from_slice(b"null"),
    }
}

fn address(line: &mut Vec<u8>, key: &str, address: std::net::IpAddr) {
    name(line, key);
    line.push(b'"');
    put(line, address);
    line.push(b'"');
}

fn number(line: &mut Vec<u8>, key: &str, value: u64) {
    name(line, key);
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn quoted(line: &mut Vec<u8>, value: &str) {
    // Nearly all values need no escape, and the general writer looks at each byte.
    if value.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\' && byte != 0x7f) {
        line.push(b'"');
        line.extend_from_slice(value.as_bytes());
        line.push(b'"');
    } else {
        serde_json::to_writer(line, value).expect("writing to a vector does not fail");
    }
}

fn labelled(line: &mut Vec<u8>, label: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    line.push(b' ');
    line.extend_from_slice(label.as_bytes());
    line.push(b'=');
    if value.contains(' ') {
        line.push(b'"');
        plain(line, value);
        line.push(b'"');
    } else {
        plain(line, value);
    }
}

/// Text as it is, except that nothing in it can move a terminal's cursor or begin another line.
fn plain(line: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        line.extend_from_slice(text.as_bytes());
    } else {
        put(line, text.escape_debug());
    }
}

fn put(line: &mut Vec<u8>, value: impl std::fmt::Display) {
    write!(line, "{value}").expect("writing to a vector does not fail");
}

/// Milliseconds with three decimals, as a number.
fn write_millis(line: &mut Vec<u8>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    line.extend_from_slice(itoa::Buffer::new().format(micros / 1000).as_bytes());
    line.push(b'.');
    digits(line, micros % 1000);
}

/// RFC 3339 in UTC, to the millisecond. What is above the second is formatted once a second.
fn write_time(line: &mut Vec<u8>, at: Timestamp) {
    thread_local! {
        static SECOND: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    let millis = at.as_micros() / 1000;
    SECOND.with_borrow_mut(|(second, text)| {
        if *second != millis / 1000 {
            *second = millis / 1000;
            *text = Timestamp::from_micros(*second * 1_000_000).to_string();
            text.truncate(TO_THE_SECOND);
        }
        line.extend_from_slice(text.as_bytes());
    });
    line.push(b'.');
    digits(line, millis % 1000);
    line.push(b'Z');
}

/// The length of `2026-11-21T07:58:52`.
const TO_THE_SECOND: usize = 19;

/// Three digits.
fn digits(line: &mut Vec<u8>, below_1000: u64) {
    for divisor in [100, 10, 1] {
        let digit = below_1000 / divisor % 10;
        line.push(b'0' + u8::try_from(digit).expect("a digit is below 10"));
    }
}

#[cfg(test)]
mod tests;
