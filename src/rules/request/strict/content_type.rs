//! `Content-Type` as clients write it.

use smallvec::SmallVec;

use crate::rules::request::NotUnderstood;
use crate::wire::head::{Fields, KnownName, is_token_byte};

/// The format that a body declares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StrictContentType<'t> {
    pub(super) kind: DeclaredKind<'t>,
    pub(super) charset: Charset,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DeclaredKind<'t> {
    /// There is no `Content-Type`, or one that says nothing about fields: clients leave it to the application.
    None,
    Form,
    /// With its boundary.
    Multipart(&'t str),
    Json,
    Xml,
    /// A format without fields, or one that is not read here.
    Other,
}

/// The character sets that are read here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Charset {
    /// UTF-8 or ASCII.
    Utf8,
    Latin1,
}

/// The character set of this name; `None`: one that is not read here.
pub(crate) fn charset(name: &str) -> Option<Charset> {
    const UTF_8: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];
    const LATIN_1: [&str; 4] = ["iso-8859-1", "iso8859-1", "latin1", "latin-1"];
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    if UTF_8.iter().any(is) { Some(Charset::Utf8) } else { LATIN_1.iter().any(is).then_some(Charset::Latin1) }
}

impl<'t> StrictContentType<'t> {
    /// Reads the header of a request.
    pub(crate) fn read(fields: &'t Fields) -> Result<Self, NotUnderstood> {
        let mut lines = fields.get_all(KnownName::CONTENT_TYPE);
        let Some(line) = lines.next() else { return Ok(Self { kind: DeclaredKind::None, charset: Charset::Utf8 }) };
        if lines.next().is_some() {
            return Err(NotUnderstood::ContentType);
        }
        // As most clients write it.
        if line == FORM.as_bytes() {
            return Ok(Self { kind: DeclaredKind::Form, charset: Charset::Utf8 });
        }
        Self::parse(str::from_utf8(line).map_err(|_| NotUnderstood::ContentType)?)
    }

    /// `type/subtype; name=value; name="value"`, with three parameters at most.
    pub(super) fn parse(line: &'t str) -> Result<Self, NotUnderstood> {
        let odd = NotUnderstood::ContentType;
        let mut rest = line.split(';');
        let name = rest.next().unwrap_or_default().trim_end_matches(' ');
        let is_type = name.split_once('/').is_some_and(|(one, other)| is_token(one) && is_token(other));
        let mut seen: SmallVec<[&str; MOST_PARAMETERS]> = SmallVec::new();
        let (mut character_set, mut boundary, mut has_other) = (Charset::Utf8, None, false);
        for parameter in rest.map(|parameter| parameter.trim_matches(' ')) {
            // Some tutorials write this instead of `charset=utf-8`. No application reads it.
            if parameter.eq_ignore_ascii_case("utf-8") {
                continue;
            }
            let (name, value) = parameter.split_once('=').ok_or(odd)?;
            let value = match value.strip_prefix('"') {
                Some(quoted) => quoted.strip_suffix('"').filter(|text| text.bytes().all(is_quotable)).ok_or(odd)?,
                None => Some(value).filter(|text| is_token(text)).ok_or(odd)?,
            };
            if !is_token(name) || seen.len() == MOST_PARAMETERS || seen.iter().any(|one| one.eq_ignore_ascii_case(name))
            {
                return Err(odd);
            }
            seen.push(name);
            if name.eq_ignore_ascii_case("charset") {
                character_set = charset(value).ok_or(NotUnderstood::Charset)?;
            } else if name.eq_ignore_ascii_case("boundary") {
                boundary = Some(value).filter(|boundary| is_boundary(boundary));
                if boundary.is_none() {
                    return Err(odd);
                }
            } else {
                // Some applications look for the name of a format anywhere in the line.
                has_other |= [name, value].iter().any(|text| names_a_format(text));
            }
        }
        let kind = match (kind(name), boundary) {
            (DeclaredKind::Multipart(_), Some(boundary)) => DeclaredKind::Multipart(boundary),
            (DeclaredKind::Multipart(_), None) | (_, Some(_)) => return Err(odd),
            (kind, None) => kind,
        };
        if is_type && !has_other { Ok(Self { kind, charset: character_set }) } else { Err(odd) }
    }
}

fn kind(name: &str) -> DeclaredKind<'static> {
    let lower = name.to_ascii_lowercase();
    match &lower[..] {
        FORM => DeclaredKind::Form,
        "multipart/form-data" => DeclaredKind::Multipart(""),
        "application/json" | "text/json" => DeclaredKind::Json,
        "application/xml" | "text/xml" => DeclaredKind::Xml,
        "text/plain" | "application/octet-stream" => DeclaredKind::None,
        _ if lower.ends_with("+json") => DeclaredKind::Json,
        _ if lower.ends_with("+xml") => DeclaredKind::Xml,
        _ => DeclaredKind::Other,
    }
}

fn names_a_format(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["urlencoded", "multipart", "json", "xml"].iter().any(|format| lower.contains(format))
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

fn is_quotable(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\') || byte == b' '
}

fn is_boundary(text: &str) -> bool {
    let is_boundary_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"'+_-.".contains(&byte);
    (1..=70).contains(&text.len()) && text.bytes().all(is_boundary_byte)
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Clients write one or two.
const MOST_PARAMETERS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: DeclaredKind<'_>) {
        assert_eq!(StrictContentType::parse(line).map(|read| read.kind), Ok(expected), "{line}");
    }

    #[test]
    fn types_as_clients_write_them_are_understood() {
        check("application/x-www-form-urlencoded", DeclaredKind::Form);
        check("Application/X-WWW-Form-Urlencoded; charset=UTF-8", DeclaredKind::Form);
        check(
            "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxk",
            DeclaredKind::Multipart("----WebKitFormBoundary7MA4YWxk"),
        );
        check("multipart/form-data; boundary=\"a-b\"", DeclaredKind::Multipart("a-b"));
        check("multipart/form-data; charset=utf-8; boundary=b", DeclaredKind::Multipart("b"));
        check("application/json", DeclaredKind::Json);
        check("application/json;charset=\"utf-8\"", DeclaredKind::Json);
        check("application/json; utf-8", DeclaredKind::Json);
        check("application/vnd.api+json", DeclaredKind::Json);
        check("application/json; odata=verbose", DeclaredKind::Json);
        check("text/xml; charset=iso-8859-1", DeclaredKind::Xml);
        check("application/soap+xml; charset=utf-8; action=\"urn:login\"", DeclaredKind::Xml);
        check("text/plain;charset=UTF-8", DeclaredKind::None);
        check("image/png", DeclaredKind::Other);
    }

    #[test]
    fn what_applications_read_differently_is_not_understood() {
        for line in [
            "",
            "json",
            "application/json;",
            "application/json; charset",
            "application/json; charset =utf-8",
            "application/json, multipart/form-data; boundary=abc",
            "application/x-www-form-urlencoded; x=application/json",
            "application/x-www-form-urlencoded; boundary=b",
            "application/json; a=1; b=2; c=3; d=4",
            "application/json; charset=utf-8; charset=utf-8",
            "multipart/form-data",
            "multipart/form-data; boundary=abc; boundary=def",
            "multipart/form-data; boundary=abc; Boundary=abc",
            "multipart/form-data; boundary*=utf-8''abc",
            "multipart/form-data; boundary*0=ab; boundary*1=c",
            "multipart/form-data; boundary=\"a\\\"bc\"",
            "multipart/form-data; boundary=\"abc",
            "multipart/form-data; boundary=\"a b\"",
            "multipart/form-data; boundary =abc",
            "multipart/form-data, boundary=abc",
            "multipart/form-data; xboundary=abc",
            "multipart/form-data;\tboundary=abc",
            "multipart/form-data; boundary=",
        ] {
            assert_eq!(StrictContentType::parse(line), Err(NotUnderstood::ContentType), "{line}");
        }
        for line in [
            "application/json; charset=utf-7",
            "text/xml; charset=ibm037",
            "application/x-www-form-urlencoded; charset=utf-16",
        ] {
            assert_eq!(StrictContentType::parse(line), Err(NotUnderstood::Charset), "{line}");
        }
        let twice = Fields::from_iter([
            (KnownName::CONTENT_TYPE, "application/json"),
            (KnownName::CONTENT_TYPE, "application/json"),
        ]);
        assert_eq!(StrictContentType::read(&twice), Err(NotUnderstood::ContentType));
    }
}
