//! Lines of JSON with portcullis's own names.

use http::Version;

use super::fields::{FieldFormat, FieldName, FieldStart, FieldValue};
use super::{LineContext, fields};
use crate::record::RequestRecord;
use crate::record::access_log::write::{names, put_usual};
use crate::record::line::{millis, raw, time};
use crate::words::clock::Timestamp;

/// Unknown fields are `null`.
pub(super) fn write(line: &mut Vec<u8>, at: Timestamp, request: &RequestRecord<'_>, context: &LineContext<'_>) {
    raw(line, "{\"time\":\"");
    time(line, at);
    line.push(b'"');
    fields::each::<Json>(line, request, context);
    raw(line, "}\n");
}

struct Json;

impl FieldFormat for Json {
    const TEXT_END: &str = "\"";
    const INTEGER_END: &str = "";
    const TRUE: &str = "true";

    fn start(name: &FieldName) -> &FieldStart {
        &name.json
    }

    #[expect(clippy::inline_always, reason = "see `FieldFormat`")]
    #[inline(always)]
    fn put(line: &mut Vec<u8>, name: &FieldName, value: FieldValue<'_>) {
        match value {
            FieldValue::Unknown => raw(line, name.json_null),
            FieldValue::ShadowLimits(request, context) => {
                raw(line, name.json.other);
                names(line, context.shadow_limits(request));
            }
            FieldValue::Span(span) => {
                raw(line, name.json.other);
                millis(line, span);
            }
            FieldValue::Host(host) => put_usual::<Self>(line, name, FieldValue::Text(host)),
            FieldValue::Protocol(version) => put_usual::<Self>(line, name, FieldValue::Word(alpn(version))),
            value => put_usual::<Self>(line, name, value),
        }
    }
}

/// The protocol's name in the ALPN registry of TLS.
fn alpn(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "http/1.0",
        Version::HTTP_2 => "h2",
        Version::HTTP_3 => "h3",
        _ => "http/1.1",
    }
}
