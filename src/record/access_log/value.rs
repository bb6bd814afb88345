//! Values that several formats share.

use http::Version;

use super::fields::FieldValue;
use crate::record::line::address;
use crate::record::line::escaped;
use crate::record::line::number;
use crate::record::line::put;
use crate::record::line::quoted;
use crate::record::line::quoted_bytes;

/// Writes a value that looks the same in all JSON formats. Those that do not are written by each format.
pub(super) fn common_value(line: &mut Vec<u8>, value: FieldValue<'_>) {
    match value {
        FieldValue::Text(text) => quoted(line, text),
        FieldValue::Bytes(bytes) => quoted_bytes(line, bytes),
        FieldValue::Number(value) => number(line, value),
        FieldValue::Address(ip) => {
            line.push(b'"');
            address(line, ip);
            line.push(b'"');
        }
        FieldValue::Trace(id) => quoted(line, id.as_str()),
        FieldValue::Hash(hash) => put(line, format_args!("\"{hash:032x}\"")),
        FieldValue::MaskedKey(key) => {
            line.push(b'"');
            masked_key(line, key);
            line.push(b'"');
        }
        FieldValue::Unknown
        | FieldValue::ShadowLimits(..)
        | FieldValue::Protocol(_)
        | FieldValue::Host(_)
        | FieldValue::Span(_) => {}
    }
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
