//! Writes the parts of a log line: JSON without an intermediate value, and text that is safe on a terminal.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use crate::clock::Timestamp;

/// The version of the Elastic Common Schema that lines follow.
pub(super) const ECS_VERSION: &str = "8.17.0";

pub(super) fn raw(line: &mut Vec<u8>, text: &str) {
    line.extend_from_slice(text.as_bytes());
}

pub(super) fn put(line: &mut Vec<u8>, value: impl Display) {
    write!(line, "{value}").expect("writing to a vector does not fail");
}

pub(super) fn number(line: &mut Vec<u8>, value: u64) {
    raw(line, itoa::Buffer::new().format(value));
}

/// Text as a JSON string.
pub(super) fn quoted(line: &mut Vec<u8>, value: &str) {
    line.push(b'"');
    escaped(line, value);
    line.push(b'"');
}

/// Bytes as a JSON string. They need not be UTF-8.
pub(super) fn quoted_bytes(line: &mut Vec<u8>, value: &[u8]) {
    match std::str::from_utf8(value) {
        Ok(text) => quoted(line, text),
        Err(_) => quoted(line, &String::from_utf8_lossy(value)),
    }
}

/// Text within a JSON string.
pub(super) fn escaped(line: &mut Vec<u8>, value: &str) {
    // Nearly all values need no escape, and the general writer is slow because it branches on each byte.
    if value.bytes().fold(false, |any, byte| any | needs_escape(byte)) {
        let string = serde_json::to_string(value).expect("text is JSON");
        raw(line, &string[1..string.len() - 1]);
    } else {
        raw(line, value);
    }
}

/// The caller checks all bytes of a value without a branch, so that the compiler checks many at once.
fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\' || byte == 0x7f
}

/// An address in the form of its `Display`.
pub(super) fn address(line: &mut Vec<u8>, address: IpAddr) {
    let IpAddr::V4(address) = address else { return put(line, address) };
    for (position, octet) in address.octets().into_iter().enumerate() {
        if position > 0 {
            line.push(b'.');
        }
        number(line, octet.into());
    }
}

/// Text in which control characters are escaped, so that it cannot move a terminal's cursor or begin another line.
pub(super) fn plain(line: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        raw(line, text);
    } else {
        put(line, text.escape_debug());
    }
}

/// Milliseconds with three decimals, as a number.
pub(super) fn millis(line: &mut Vec<u8>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    number(line, micros / 1000);
    line.push(b'.');
    digits(line, micros % 1000);
}

/// RFC 3339 in UTC, to the millisecond. The part down to the second is formatted once a second.
pub(super) fn time(line: &mut Vec<u8>, at: Timestamp) {
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
        raw(line, text);
    });
    line.push(b'.');
    digits(line, millis % 1000);
    line.push(b'Z');
}

/// Nanoseconds since 1970 as text, as OpenTelemetry writes them: JSON numbers need not hold 64 bits.
pub(super) fn nanos(line: &mut Vec<u8>, at: Timestamp) {
    line.push(b'"');
    number(line, at.as_micros());
    raw(line, "000\"");
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
