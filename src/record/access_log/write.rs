//! Writes the line of a request in the configured format.

use http::Version;

use super::formats;
use crate::record::access_log::fields::{FieldFormat, FieldName, FieldStart, FieldValue};
use crate::record::line::{escaped, escaped_bytes, quoted, raw};
use crate::record::metrics::LimitMetrics;
use crate::record::{LogFormat, RequestRecord};
use crate::words::clock::Timestamp;
use crate::words::digits::{hex, push_address, push_decimal, three_digits};

/// Appends the line of one request.
pub(in crate::record) fn write(
    line: &mut Vec<u8>,
    format: LogFormat,
    at: Timestamp,
    request: &RequestRecord<'_>,
    context: &LineContext<'_>,
) {
    match format {
        LogFormat::Json => formats::write_json(line, at, request, context),
        LogFormat::Human => formats::write_human(line, at, request, context),
        LogFormat::Ecs => formats::write_ecs(line, at, request, context),
        LogFormat::Otel => formats::write_otel(line, at, request, context),
    }
}

// The data that a line needs besides the request record.

/// Names that a record holds only as positions, and the parts that only some configurations log.
#[derive(Clone, Copy, Debug)]
pub(in crate::record) struct LineContext<'a> {
    pub(in crate::record) route: Option<&'a str>,
    pub(in crate::record) upstream: Option<&'a str>,
    /// `None`: lines have no query, or the request has none.
    pub(in crate::record) query: Option<&'a str>,
    /// The name of the gateway, where lines have it.
    pub(in crate::record) gateway: Option<&'a str>,
    /// By `LimitId`.
    pub(in crate::record) limits: &'a [LimitMetrics],
}

impl<'a> LineContext<'a> {
    /// The names of the shadow limits that would have denied the request.
    pub(super) fn shadow_limits(&self, request: &RequestRecord<'a>) -> impl Iterator<Item = &'a str> {
        let limits = self.limits;
        let denied = request.limits.iter().filter(|report| report.shadow && report.applied.is_some());
        denied.map(move |report| &*limits[usize::from(report.limit.0)].name)
    }
}

// The message of a line in the formats that want one.

/// `POST example.com/login 429 denied`, within a JSON string.
pub(super) fn message(line: &mut Vec<u8>, request: &RequestRecord<'_>) {
    raw(line, request.method.as_str());
    line.push(b' ');
    escaped(line, request.host);
    escaped(line, request.path);
    line.push(b' ');
    raw(line, request.status.as_ref().map_or("-", |status| status.as_str()));
    line.push(b' ');
    raw(line, request.decision.as_str());
}

// Values that several formats share.

/// Appends a field whose value looks the same in all JSON formats. Each format appends its other fields itself.
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
        FieldValue::Keys(request, context) => within_text::<F>(line, start, |line| keys(line, request, context)),
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

/// `0123456789abcdef0123456789abcdef login-account`, one key after another, within a JSON string. The name of a limit may hold
/// anything but a line break, which stands between two keys.
fn keys(line: &mut Vec<u8>, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    for (position, (limit, hash)) in request.keys.iter().enumerate() {
        if position > 0 {
            raw(line, "\\n");
        }
        line.extend_from_slice(&hex(hash.0));
        line.push(b' ');
        escaped(line, &context.limits[usize::from(limit.0)].name);
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

#[cfg(test)]
mod tests {
    mod expected;
    mod lines;
    mod oracle;
}
