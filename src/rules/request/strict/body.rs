//! A body in exactly one format.

use bytes::Bytes;

use super::content_type::{Charset, DeclaredKind, StrictContentType};
use super::json;
use super::multipart::StrictParts;
use super::pairs::{PairsIn, StrictPairs};
use crate::rules::request::NotUnderstood;
use crate::rules::request::xml::ElementPath;

/// A body that is understood.
#[derive(Debug)]
pub(crate) struct StrictBody {
    text: Bytes,
    format: StrictFormat,
    /// Whether the `Content-Type` names this format, so that no application reads another.
    is_declared: bool,
}

#[derive(Debug)]
enum StrictFormat {
    /// There is no body, or one of plain words: no application reads a field in it.
    NoFields,
    Form(StrictPairs),
    Multipart(StrictParts),
    Json,
    Xml,
}

impl StrictBody {
    pub(crate) const EMPTY: Self = Self { text: Bytes::new(), format: StrictFormat::NoFields, is_declared: true };

    /// Reads a whole body without its encodings.
    pub(crate) fn read(content_type: StrictContentType<'_>, text: &Bytes) -> Result<Self, NotUnderstood> {
        if text.is_empty() {
            return Ok(Self::EMPTY);
        }
        let StrictContentType { kind, charset } = content_type;
        let body = |format, is_declared| Self { text: text.clone(), format, is_declared };
        if let DeclaredKind::Multipart(boundary) = kind {
            return Ok(body(StrictFormat::Multipart(StrictParts::read(text, boundary, charset)?), true));
        }
        let start = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        match start.iter().find(|byte| !b" \t\r\n".contains(byte)) {
            _ if kind == DeclaredKind::Other => Err(NotUnderstood::Format),
            Some(b'{' | b'[') => {
                let is_declared = kind == DeclaredKind::Json;
                if !json::is_json(text_of(start, charset)?) {
                    Err(NotUnderstood::Json)
                } else if is_declared || !may_hold_pairs(text) {
                    Ok(body(StrictFormat::Json, is_declared))
                } else {
                    Err(NotUnderstood::Format)
                }
            }
            Some(b'<') => {
                let is_declared = kind == DeclaredKind::Xml;
                if !json::is_xml(text_of(start, charset)?) {
                    Err(NotUnderstood::Xml)
                } else if is_declared || !may_hold_pairs(text) {
                    Ok(body(StrictFormat::Xml, is_declared))
                } else {
                    Err(NotUnderstood::Format)
                }
            }
            // A text, a number, or a word alone.
            _ if kind == DeclaredKind::Json && text_of(start, charset).is_ok_and(json::is_json) => {
                Ok(body(StrictFormat::Json, true))
            }
            _ if memchr::memchr(b'=', text).is_some() => {
                let pairs = StrictPairs::read(text, PairsIn::Form, charset)?;
                Ok(body(StrictFormat::Form(pairs), kind == DeclaredKind::Form))
            }
            _ if matches!(kind, DeclaredKind::None | DeclaredKind::Form) && text.iter().copied().all(is_of_words) => {
                Ok(body(StrictFormat::NoFields, true))
            }
            _ => Err(NotUnderstood::Format),
        }
    }

    /// Whether no application reads the body in another format than the one that it has and declares.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_declared && matches!(self.format, StrictFormat::Multipart(_) | StrictFormat::Json | StrictFormat::Xml)
    }

    /// Whether no application reads any field.
    pub(crate) fn has_no_field(&self) -> bool {
        matches!(self.format, StrictFormat::NoFields)
    }

    /// Whether the gateway finds every value of a form field that some application may read.
    pub(crate) fn judge_form(&self, name: &str) -> Result<(), NotUnderstood> {
        match &self.format {
            StrictFormat::Form(pairs) => pairs.judge(&self.text, name),
            StrictFormat::Multipart(parts) => parts.presence(&self.text, name).map(|_| ()),
            StrictFormat::NoFields | StrictFormat::Json | StrictFormat::Xml => Ok(()),
        }
    }

    pub(crate) fn judge_json(&self, path: &str) -> Result<(), NotUnderstood> {
        match self.format {
            StrictFormat::Json => json::presence(&self.text, path).map(|_| ()),
            _ => Ok(()),
        }
    }

    pub(crate) fn judge_element(&self, path: &ElementPath<'_>) -> Result<(), NotUnderstood> {
        match self.format {
            StrictFormat::Xml => json::xml_presence(&self.text, path).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Whether every application reads the same value of a form field: it stands there once, under exactly this name, in
    /// the format that the body declares.
    pub(crate) fn has_sole_field(&self, name: &str) -> bool {
        let presence = match &self.format {
            StrictFormat::Form(pairs) if self.is_declared => pairs.presence(&self.text, name),
            StrictFormat::Multipart(parts) => parts.presence(&self.text, name),
            _ => return false,
        };
        presence == Ok(Presence::Once)
    }

    /// Whether a scalar at a dotted path of JSON has one value for every reader.
    pub(crate) fn has_sole_scalar(&self, path: &str) -> bool {
        let is_json = matches!(self.format, StrictFormat::Json) && self.is_declared;
        is_json && json::presence(&self.text, path) == Ok(Presence::Once)
    }

    /// Whether the text of an XML element has one value for every reader.
    pub(crate) fn has_sole_element(&self, path: &ElementPath<'_>) -> bool {
        let is_xml = matches!(self.format, StrictFormat::Xml) && self.is_declared;
        is_xml && json::xml_presence(&self.text, path) == Ok(Presence::Once)
    }
}

/// The text of a body whose bytes above 127 have one reading.
fn text_of(bytes: &[u8], charset: Charset) -> Result<&str, NotUnderstood> {
    let text = str::from_utf8(bytes).map_err(|_| NotUnderstood::Charset)?;
    if charset == Charset::Utf8 || text.is_ascii() { Ok(text) } else { Err(NotUnderstood::Charset) }
}

/// Whether an application that reads any text as a form may find a field.
fn may_hold_pairs(text: &[u8]) -> bool {
    memchr::memchr(b'=', text).is_some() && memchr::memchr2(b'&', b';', text).is_some()
}

/// Bytes of words, which have no meaning in any format.
fn is_of_words(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" \t\r\n.,!?'()_-".contains(&byte)
}

// How often a field stands in a text.

/// How often a field stands in a text that is understood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Presence {
    Absent,
    /// Once, under exactly its name, as a text: every application reads the same value.
    Once,
    /// Several times, in another case, or as something else than a text.
    Otherwise,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::head::{Fields, KnownName};

    fn read(kind: Option<&str>, text: &str) -> Result<StrictBody, NotUnderstood> {
        let fields: Fields = kind.into_iter().map(|kind| (KnownName::CONTENT_TYPE, kind)).collect();
        StrictBody::read(StrictContentType::read(&fields)?, &Bytes::copy_from_slice(text.as_bytes()))
    }

    #[track_caller]
    fn check(kind: &str, text: &str, expected: Result<(), NotUnderstood>) {
        assert_eq!(read(Some(kind), text).map(|_| ()), expected, "{kind}: {text}");
    }

    const FORM: &str = "application/x-www-form-urlencoded";
    const PARTS: &str = "multipart/form-data; boundary=b";
    const JSON: &str = "application/json";

    #[test]
    fn a_body_in_one_format_is_understood() {
        for kind in [FORM, JSON, "text/plain;charset=UTF-8", "text/xml", "application/octet-stream"] {
            check(kind, "", Ok(()));
            check(kind, "username=alice&password=x", Ok(()));
            check(kind, "{\"username\": \"alice=\"}", Ok(()));
        }
        assert!(read(None, "username=alice").is_ok() && read(None, "{\"username\": \"alice\"}").is_ok());
        check(JSON, "\u{feff} {\"a\": \"&username=x&\"}", Ok(()));
        check(JSON, "\"alice\"", Ok(()));
        check("text/xml", "<?xml version=\"1.0\"?><a>&lt;</a>", Ok(()));
        check("text/plain", "Hello, how are you?\n", Ok(()));
        check(FORM, "words", Ok(()));
        check(PARTS, "--b--\r\n", Ok(()));
    }

    #[test]
    fn a_body_that_is_not_in_one_format_is_not_understood() {
        check(JSON, "not json", Err(NotUnderstood::Format));
        check(JSON, "{\"a\": 1", Err(NotUnderstood::Json));
        check(FORM, "{=1&username=alice", Err(NotUnderstood::Json));
        check(FORM, "{\"a\": \"&username=form&\"}", Err(NotUnderstood::Format));
        check("text/plain", "{\"a\": \"&username=form&\"}", Err(NotUnderstood::Format));
        check("text/plain", "<?xml version=\"1.0\"?><a>&lt;</a>", Err(NotUnderstood::Format));
        check("text/plain", ")]}'\n{\"username\": \"alice\"}", Err(NotUnderstood::Format));
        check("text/plain", "// x\n{\"username\": \"alice\"}", Err(NotUnderstood::Format));
        check("text/plain", "username: alice", Err(NotUnderstood::Format));
        check(PARTS, "username=alice", Err(NotUnderstood::Multipart));
        check(
            "text/plain",
            "--b\r\nContent-Disposition: form-data; name=\"u\"\r\n\r\nx\r\n--b--",
            Err(NotUnderstood::Form),
        );
        check("application/msgpack", "username=alice", Err(NotUnderstood::Format));
        check("application/json; charset=latin1", "{\"a\": \"\u{e9}\"}", Err(NotUnderstood::Charset));
        check("nonsense", "username=alice", Err(NotUnderstood::ContentType));
    }

    #[test]
    fn a_sole_field_stands_in_the_format_that_is_declared() {
        let sole = |kind, text| read(Some(kind), text).is_ok_and(|body| body.has_sole_field("user"));
        assert!(sole(FORM, "user=alice&password=x"));
        assert!(sole("Application/X-WWW-Form-Urlencoded; charset=utf-8", "password=x&us%65r=alice"));
        assert!(sole(PARTS, "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nalice\r\n--b--\r\n"));
        for text in ["USER=alice", "user=alice&user=bob", "user=alice&User=bob", "user[]=alice", "x=1;user=alice", ""] {
            assert!(!sole(FORM, text), "{text}");
        }
        assert!(!sole("text/plain", "user=alice") && !sole(JSON, "user=alice"));
        let scalar = |kind, text| read(Some(kind), text).is_ok_and(|body| body.has_sole_scalar("user"));
        assert!(scalar(JSON, "{\"user\": \"alice\"}") && !scalar("text/plain", "{\"user\": \"alice\"}"));
        assert!(!scalar(JSON, "{\"User\": \"alice\"}") && !scalar(JSON, "{\"user\": true}"));
    }
}
