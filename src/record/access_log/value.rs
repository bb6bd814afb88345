//! Values that several formats share.

use http::Version;

use super::fields::FieldFormat;
use super::fields::FieldName;
use super::fields::FieldStart;
use super::fields::FieldValue;
use crate::digits::hex;
use crate::digits::push_address;
use crate::digits::push_decimal;
use crate::digits::three_digits;
use crate::record::line::escaped;
use crate::record::line::escaped_bytes;
use crate::record::line::quoted;
use crate::record::line::raw;

/// Appends a field whose value looks the same in all JSON formats. Those that do not are appended by each format.
#[expect(clippy::inline_always, reason = "see `FieldFormat`")]
#[inline(always)]
pub(super) fn put_usual<F: FieldFormat>(line: &mut Vec<u8>, name: &FieldName, value: FieldValue<'_>) {
    let start = F::start(name);
    match value {
        FieldValue::Number(value) => {
            raw(line, start.integer);
            push_decimal(line, value);
            raw(line, F::INTEGER_END);
        }
        FieldValue::Status(status) => {
            raw(line, start.integer);
            line.extend_from_slice(&three_digits(status.as_u16().into()));
            raw(line, F::INTEGER_END);
        }
        FieldValue::True => {
            raw(line, start.other);
            raw(line, F::TRUE);
        }
        FieldValue::Text(text) => within_text::<F>(line, start, |line| escaped(line, text)),
        FieldValue::Word(word) => within_text::<F>(line, start, |line| raw(line, word)),
        FieldValue::Bytes(bytes) => within_text::<F>(line, start, |line| escaped_bytes(line, bytes)),
        FieldValue::Address(address) => within_text::<F>(line, start, |line| push_address(line, address)),
        FieldValue::Trace(id) => within_text::<F>(line, start, |line| line.extend_from_slice(id.as_bytes())),
        FieldValue::Hash(hash) => within_text::<F>(line, start, |line| line.extend_from_slice(&hex(hash))),
        FieldValue::MaskedKey(key) => within_text::<F>(line, start, |line| masked_key(line, key)),
        FieldValue::Unknown
        | FieldValue::ShadowLimits(..)
        | FieldValue::Protocol(_)
        | FieldValue::Host(_)
        | FieldValue::Span(_) => {}
    }
}

#[expect(clippy::inline_always, reason = "see `FieldFormat`")]
#[inline(always)]
fn within_text<F: FieldFormat>(line: &mut Vec<u8>, start: &FieldStart, put: impl FnOnce(&mut Vec<u8>)) {
    raw(line, start.text);
    put(line);
    raw(line, F::TEXT_END);
}

/// `client_ip=198.51.*.* param.username=a***1f3c`, within a JSON string.
fn masked_key(line: &mut Vec<u8>, key: &[(String, String)]) {
    for (position, (selector, value)) in key.iter().enumerate() {
        if position > 0 {
            line.push(b' ');
        }
        escaped(line, selector);
        line.push(b'=');
        escaped(line, value);
    }
}

/// A JSON array of strings.
pub(super) fn names<'n>(line: &mut Vec<u8>, names: impl Iterator<Item = &'n str>) {
    line.push(b'[');
    for (position, name) in names.enumerate() {
        if position > 0 {
            line.push(b',');
        }
        quoted(line, name);
    }
    line.push(b']');
}

/// `1.1`, `2`: ECS and OpenTelemetry have a separate field for the protocol's name.
pub(super) fn version_number(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

/// A host and its port, if it has one.
pub(super) fn split_port(host: &str) -> (&str, Option<u16>) {
    let split = host.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    // `[2001:db8::1]` ends with a part of the address, not with a port.
    split.filter(|_| !host.ends_with(']')).map_or((host, None), |(name, port)| (name, Some(port)))
}
