//! Reads `Content-Type` leniently: every kind of body that some application may take from it.

use std::borrow::Cow;

use crate::rules::request::urlencoded;
use crate::wire::head::{Fields, KnownName};

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
}

impl ContentType {
    pub(crate) fn read(fields: &Fields) -> Self {
        let mut content_type = Self::default();
        for line in fields.get_all(KnownName::CONTENT_TYPE) {
            // As most clients write it.
            if line == b"application/x-www-form-urlencoded" {
                content_type.kinds.urlencoded = true;
                continue;
            }
            let line = String::from_utf8_lossy(line);
            let lower = line.to_ascii_lowercase();
            content_type.kinds.urlencoded |= lower.contains("urlencoded");
            content_type.kinds.multipart |= lower.contains("multipart");
            content_type.kinds.json |= lower.contains("json");
            content_type.kinds.xml |= lower.contains("xml");
            let room = MAX_BOUNDARIES.saturating_sub(content_type.boundaries.len());
            content_type.boundaries.extend(boundaries(&line, &lower).take(room));
        }
        content_type
    }
}

/// Every boundary that a line may name; `lower` is `line` in lower case.
fn boundaries(line: &str, lower: &str) -> impl Iterator<Item = Vec<u8>> {
    lower.match_indices("boundary").filter_map(|(at, name)| {
        let rest = &line[at + name.len()..];
        let value = rest
            .trim_start_matches(|char: char| char == '*' || char.is_ascii_digit() || char.is_whitespace())
            .strip_prefix('=')?;
        let value = match value.trim_start().strip_prefix('"') {
            Some(inner) => inner.split('"').next().unwrap_or_default(),
            None => value.split([';', ',']).next().unwrap_or_default().trim(),
        };
        let value = urlencoded::text(Cow::Borrowed(value.as_bytes())).into_owned().into_bytes();
        (!value.is_empty()).then_some(value)
    })
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

    #[test]
    fn every_format_in_a_line_is_found() {
        let kinds = |line: &str| content_type(&[line]).kinds;
        assert_eq!(kinds("text/plain"), BodyKinds::default());
        assert_eq!(kinds("Application/X-WWW-Form-Urlencoded"), BodyKinds { urlencoded: true, ..BodyKinds::default() });
        assert_eq!(
            kinds("application/vnd.api+json, multipart/form-data; x=text/xml"),
            BodyKinds { multipart: true, json: true, xml: true, ..BodyKinds::default() }
        );
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
