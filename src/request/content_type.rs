//! Reads `Content-Type` leniently: every kind of body that some application may take from it.

use std::borrow::Cow;

use super::percent;
use crate::head::Fields;
use crate::head::KnownName;

/// The formats that a body is read as.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "one body may be read in several of these formats")]
pub(crate) struct BodyKinds {
    pub(crate) urlencoded: bool,
    pub(crate) multipart: bool,
    pub(crate) json: bool,
    pub(crate) xml: bool,
}

/// The declared type of a body.
#[derive(Debug, Default)]
pub(crate) struct ContentType {
    /// Every format that some application could take from the header.
    pub(crate) kinds: BodyKinds,
    /// The boundaries of a multipart body, in every reading of the parameter.
    pub(crate) boundaries: Vec<Vec<u8>>,
    /// Whether the gateway can read the type. It can when there is none.
    pub(crate) is_known: bool,
    /// Whether all applications read the header alike: there is at most one, and its character set can be read here.
    pub(crate) is_plain: bool,
}

impl ContentType {
    pub(crate) fn read(fields: &Fields) -> Self {
        let mut content_type = Self { is_known: true, is_plain: true, ..Self::default() };
        for (count, line) in fields.get_all(KnownName::CONTENT_TYPE).enumerate() {
            // As most clients write it.
            if line == b"application/x-www-form-urlencoded" {
                content_type.is_plain &= count == 0;
                content_type.kinds.urlencoded = true;
                continue;
            }
            let line = String::from_utf8_lossy(line);
            let lower = line.to_ascii_lowercase();
            content_type.is_plain &= count == 0;
            content_type.is_known &= is_known(&lower);
            content_type.kinds.urlencoded |= lower.contains("urlencoded");
            content_type.kinds.multipart |= lower.contains("multipart");
            content_type.kinds.json |= lower.contains("json");
            content_type.kinds.xml |= lower.contains("xml");
            for charset in parameters(&line, &lower, "charset") {
                content_type.is_plain &= charset.is_plain && is_plain_charset(&charset.value);
            }
            for boundary in parameters(&line, &lower, "boundary") {
                content_type.is_plain &= boundary.is_plain;
                if boundary.value.is_empty() {
                    content_type.is_plain = false;
                } else {
                    content_type.boundaries.push(boundary.value.into_owned().into_bytes());
                }
            }
        }
        content_type.is_plain &= content_type.boundaries.len() <= 1;
        content_type.boundaries.truncate(MAX_BOUNDARIES);
        content_type
    }
}

/// Whether text in this character set reads the same in UTF-8, but for letters that no field name has.
pub(crate) fn is_plain_charset(charset: &str) -> bool {
    let charset = charset.trim().to_ascii_lowercase();
    matches!(
        &charset[..],
        "" | "utf-8"
            | "utf8"
            | "us-ascii"
            | "ascii"
            | "iso-8859-1"
            | "iso8859-1"
            | "latin1"
            | "windows-1252"
            | "iso-8859-15"
    )
}

/// Whether the type is one that the gateway can read, and the only one in the header.
fn is_known(lower: &str) -> bool {
    let kind = lower.split(';').next().unwrap_or_default().trim();
    let known = [
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json",
        "text/json",
        "application/xml",
        "text/xml",
        "text/plain",
    ];
    let is_token = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte));
    let is_structured = ["+json", "+xml"]
        .iter()
        .filter_map(|suffix| kind.strip_suffix(suffix)?.split_once('/'))
        .any(|(one, other)| is_token(one) && is_token(other));
    (kind.is_empty() && lower.trim().is_empty()) || known.contains(&kind) || is_structured
}

struct Parameter<'t> {
    value: Cow<'t, str>,
    /// Whether every application reads this value.
    is_plain: bool,
}

/// Every parameter of this name; `lower` is `line` in lower case.
fn parameters<'t>(line: &'t str, lower: &str, name: &str) -> Vec<Parameter<'t>> {
    let mut found: Vec<Parameter<'t>> = Vec::new();
    for (at, _) in lower.match_indices(name).take(MAX_BOUNDARIES + 1) {
        let before = &lower[..at];
        let rest = &line[at + name.len()..];
        let Some(value) = rest
            .trim_start_matches(|char: char| char == '*' || char.is_ascii_digit() || char.is_whitespace())
            .strip_prefix('=')
        else {
            continue;
        };
        let (value, quoted) = match value.trim_start().strip_prefix('"') {
            Some(inner) => (inner.split('"').next().unwrap_or_default(), true),
            None => (value.split([';', ',']).next().unwrap_or_default().trim(), false),
        };
        let behind_a_semicolon = before.trim_end().ends_with(';');
        let is_token = !value.contains(['\\', '\'', '"']) && (quoted || !value.contains(char::is_whitespace));
        let is_closed = !quoted || rest.matches('"').count().is_multiple_of(2);
        let is_plain = rest.starts_with('=') && behind_a_semicolon && is_token && is_closed && found.is_empty();
        let value = percent::text(Cow::Borrowed(value.as_bytes()));
        found.push(Parameter { value, is_plain });
    }
    found
}

/// An honest client sends one.
const MAX_BOUNDARIES: usize = 4;

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn content_type(lines: &[&str]) -> ContentType {
        ContentType::read(&lines.iter().map(|line| (KnownName::CONTENT_TYPE, line)).collect())
    }

    #[track_caller]
    fn check(line: &str, kinds: BodyKinds, understood: bool) {
        let content_type = content_type(&[line]);
        assert_eq!(content_type.kinds, kinds, "{line}");
        assert_eq!(content_type.is_plain && content_type.is_known, understood, "{line}");
    }

    const OTHER: BodyKinds = BodyKinds { urlencoded: false, multipart: false, json: false, xml: false };
    const FORM: BodyKinds = BodyKinds { urlencoded: true, ..OTHER };
    const PARTS: BodyKinds = BodyKinds { multipart: true, ..OTHER };
    const JSON: BodyKinds = BodyKinds { json: true, ..OTHER };
    const XML: BodyKinds = BodyKinds { xml: true, ..OTHER };

    #[test]
    fn a_type_is_known_by_its_name() {
        check("application/x-www-form-urlencoded", FORM, true);
        check("Application/X-WWW-Form-Urlencoded; charset=UTF-8", FORM, true);
        check("multipart/form-data; boundary=abc", PARTS, true);
        check("multipart/form-data; boundary=\"a b;c\"", PARTS, true);
        check("application/json", JSON, true);
        check("application/json;charset=\"utf-8\"", JSON, true);
        check("application/vnd.api+json", JSON, true);
        check("text/xml; charset=utf-8", XML, true);
        check("application/soap+xml; action=login", XML, true);
        check("text/plain;charset=UTF-8", OTHER, true);
        check("", OTHER, true);
    }

    #[test]
    fn what_applications_read_differently_is_not_understood() {
        check("application/octet-stream", OTHER, false);
        check("application/x-www-form-urlencoded; charset=ibm037", FORM, false);
        check("application/x-www-form-urlencoded; charset=utf-8; charset=ibm037", FORM, false);
        check("application/json; charset=utf-7", JSON, false);
        check(
            "application/json, multipart/form-data; boundary=abc",
            BodyKinds { multipart: true, json: true, ..OTHER },
            false,
        );
        check("multipart/form-data; boundary=abc; boundary=def", PARTS, false);
        check("multipart/form-data; boundary*=utf-8''abc", PARTS, false);
        check("multipart/form-data; boundary*0=ab; boundary*1=c", PARTS, false);
        check("multipart/form-data; boundary=\"a\\\"bc\"", PARTS, false);
        check("multipart/form-data; boundary=\"abc", PARTS, false);
        check("multipart/form-data; boundary =abc", PARTS, false);
        check("multipart/form-data, boundary=abc", PARTS, false);
        check("multipart/form-data; xboundary=abc", PARTS, false);
        check("multipart/mixed; boundary=abc", PARTS, false);
        check("json", JSON, false);
        assert!(!content_type(&["application/json", "application/json"]).is_plain);
    }

    #[test]
    fn every_boundary_is_found() {
        assert_eq!(content_type(&["multipart/form-data; boundary=abc"]).boundaries, [b"abc"]);
        assert_eq!(content_type(&["multipart/form-data; boundary=\"abc\""]).boundaries, [b"abc"]);
        assert_eq!(content_type(&["multipart/form-data; BOUNDARY=aBc; x=y"]).boundaries, [b"aBc"]);
        assert_eq!(content_type(&["multipart/form-data; boundary=a, boundary=b"]).boundaries, [b"a", b"b"]);
        assert_eq!(
            content_type(&["multipart/form-data; boundary=a", "multipart/form-data; boundary=b"]).boundaries,
            [b"a", b"b"]
        );
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(boundary|charset|multipart/form-data|;|=|\"|\\*|'|[ -~\u{e9}]){0,12}") {
            if let Ok(value) = HeaderValue::from_bytes(line.as_bytes()) {
                let _ = ContentType::read(&Fields::from_iter([(KnownName::CONTENT_TYPE, value)]));
            }
        }
    }
}
