//! Fields that every application reads alike. A limit counts every reading of a field, but a success is credited to a
//! name only where the field has one reading: otherwise the application may have logged in another user.

use memchr::memmem;
use serde_json::Value;

use super::name::is_read_as;
use super::percent;
use super::percent::Escapes;
use super::xml;
use crate::head::Fields;
use crate::head::KnownName;

/// The declared format of a body, where every application agrees about it.
#[derive(Debug)]
pub(super) enum UnambiguousKind {
    Urlencoded,
    /// With its boundary.
    Multipart(Vec<u8>),
    Json,
    Xml,
}

impl UnambiguousKind {
    /// `None` when there is no `Content-Type`, or one that applications read differently.
    pub(super) fn read(fields: &Fields) -> Option<Self> {
        let line = fields.single(KnownName::CONTENT_TYPE).filter(|line| line.is_ascii())?;
        let line = str::from_utf8(line).ok()?;
        let (kind, parameters) = line.split_once(';').unwrap_or((line, ""));
        match &kind.trim().to_ascii_lowercase()[..] {
            "application/x-www-form-urlencoded" => Some(Self::Urlencoded),
            "application/json" => Some(Self::Json),
            "text/xml" | "application/xml" | "application/soap+xml" => Some(Self::Xml),
            "multipart/form-data" => {
                let boundary = parameters.trim().strip_prefix("boundary=")?;
                let boundary = boundary.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(boundary);
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.'".contains(&byte);
                let fits = !boundary.is_empty() && boundary.bytes().all(is_plain);
                fits.then(|| Self::Multipart(boundary.into()))
            }
            _ => None,
        }
    }

    /// Whether a form in this format has the field once, under exactly this name.
    pub(super) fn has_sole_form_field(&self, text: &[u8], name: &str) -> bool {
        match self {
            Self::Urlencoded => pairs_have_sole(text, name),
            Self::Multipart(boundary) => parts_have_sole(text, boundary, name).unwrap_or(false),
            Self::Json | Self::Xml => false,
        }
    }

    /// Whether a document in this format has a scalar at exactly this path.
    pub(super) fn has_json_scalar(&self, text: &[u8], path: &str) -> bool {
        let Self::Json = self else { return false };
        let Ok(document) = serde_json::from_slice::<Value>(text) else { return false };
        let found = path.split('.').try_fold(&document, |value, name| match value {
            Value::Object(fields) => fields.get(name),
            Value::Array(elements) => elements.get(name.parse::<usize>().ok()?),
            _ => None,
        });
        matches!(found, Some(Value::String(_) | Value::Number(_)))
    }

    /// Whether XML in this format has one text at this path.
    pub(super) fn has_sole_element(&self, text: &[u8], path: &xml::ElementPath<'_>) -> bool {
        matches!(self, Self::Xml) && xml::is_well_formed(text) && xml::values(text, path).len() == 1
    }
}

/// Whether the pairs of a query or a form have the field once, under exactly this name, and so early that every
/// application reads it.
pub(super) fn pairs_have_sole(text: &[u8], name: &str) -> bool {
    let decoded = |text| percent::decode(text, Escapes { plus: true, code_units: false });
    let mut sole = SoleField::default();
    for (position, pair) in text.split(|byte| *byte == b'&').enumerate() {
        let sent = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        let sent = decoded(sent).unwrap_or_else(|| sent.to_vec());
        sole.see(&sent, name, position);
    }
    sole.is_sole()
}

/// The same for the parts of a multipart body; `None` when a part is not written as browsers write it.
fn parts_have_sole(text: &[u8], boundary: &[u8], name: &str) -> Option<bool> {
    let delimiter = [b"\r\n--", boundary].concat();
    let mut rest = text.strip_prefix(&delimiter[2..])?;
    let mut sole = SoleField::default();
    for position in 0.. {
        let Some(part) = rest.strip_prefix(b"\r\n") else { break };
        let headers = memmem::find(part, b"\r\n\r\n")?;
        let sent = part[..headers].strip_prefix(b"Content-Disposition: form-data; name=\"")?;
        let end = sent.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'%' | b'\r' | b'\n'))?;
        // A part with any other parameter or header is a file or an encoded text.
        let is_field = &sent[end..] == b"\"";
        let value = headers + b"\r\n\r\n".len();
        let length = memmem::find(&part[value..], &delimiter)?;
        sole.see(&sent[..end], name, if is_field { position } else { MOST_FIELDS });
        rest = &part[value + length + delimiter.len()..];
    }
    matches!(rest, b"--" | b"--\r\n").then(|| sole.is_sole())
}

/// Whether exactly one of the fields seen so far has the name.
#[derive(Default)]
struct SoleField {
    found: bool,
    is_ambiguous: bool,
}

impl SoleField {
    fn see(&mut self, sent: &[u8], name: &str, position: usize) {
        if sent == name.as_bytes() {
            self.is_ambiguous |= self.found || position >= MOST_FIELDS;
            self.found = true;
        } else {
            self.is_ambiguous |= is_read_as(&String::from_utf8_lossy(sent), name);
        }
    }

    fn is_sole(&self) -> bool {
        self.found && !self.is_ambiguous
    }
}

/// Some applications ignore later fields: PHP, Django and Express stop at a thousand.
const MOST_FIELDS: usize = 500;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(content_type: &'static str) -> Option<UnambiguousKind> {
        UnambiguousKind::read(&Fields::from_iter([(KnownName::CONTENT_TYPE, content_type)]))
    }

    #[track_caller]
    fn check(content_type: &'static str, text: &str, expected: bool) {
        let has = kind(content_type).is_some_and(|kind| kind.has_sole_form_field(text.as_bytes(), "user"));
        assert_eq!(has, expected, "{content_type}: {text}");
    }

    const FORM: &str = "application/x-www-form-urlencoded";
    const PARTS: &str = "multipart/form-data; boundary=b";

    #[test]
    fn a_form_as_browsers_send_it_is_unambiguous() {
        check(FORM, "user=alice&password=x", true);
        check("Application/X-WWW-Form-Urlencoded; charset=utf-8", "password=x&us%65r=alice", true);
        check(PARTS, "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nalice\r\n--b--\r\n", true);
        let file = "--b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"x\"\r\nContent-Type: image/png\r\n\r\n.\r\n";
        let field = "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nalice\r\n--b--\r\n";
        check("multipart/form-data; boundary=\"b\"", &format!("{file}{field}"), true);
    }

    #[test]
    fn what_some_application_reads_differently_is_ambiguous() {
        for text in [
            "USER=alice",
            "+user=alice",
            "user=alice&user=bob",
            "user=alice&User=bob",
            "user[]=alice",
            "user%00x=alice",
            "x=1;user=alice",
            "user%5b=alice&user=bob",
            "",
        ] {
            check(FORM, text, false);
        }
        check(FORM, &format!("{}user=alice", "a&".repeat(MOST_FIELDS)), false);
        check("text/plain", "user=alice", false);
        check("text/plain; x=application/x-www-form-urlencoded", "user=alice", false);
        check("application/json", "user=alice", false);
    }

    #[test]
    fn parts_that_browsers_do_not_write_are_ambiguous() {
        let part = |headers: &str| format!("--b\r\n{headers}\r\n\r\nalice\r\n--b--\r\n");
        let field = "Content-Disposition: form-data; name=\"user\"";
        for text in [
            part("Content-Disposition: form-data; name=\"user\"; filename=\"x\""),
            part("Content-Disposition: form-data; name=user"),
            part("Content-Disposition: form-data; name=\"USER\""),
            part(&format!("X: y\r\n{field}")),
            part(&format!("{field}\r\nContent-Transfer-Encoding: base64")),
            format!("x{}", part(field)),
            format!("{}{}", part("Content-Disposition: form-data; name=\"x\""), part(field)),
            part(field).replace("--b--", "--b"),
        ] {
            check(PARTS, &text, false);
        }
        check("multipart/form-data; boundary=b; boundary=c", &part(field), false);
        check(FORM, &part(field), false);
    }

    #[test]
    fn a_document_has_a_scalar_at_that_very_path() {
        let has = |path, text: &str| kind("application/json").expect("a type").has_json_scalar(text.as_bytes(), path);
        assert!(has("user", r#"{"user": "alice"}"#) && has("user.id", r#"{"user": {"id": 7}}"#));
        assert!(!has("user", r#"{"User": "alice"}"#) && !has("user.id", r#"{"user.id": 7}"#));
        assert!(!has("user", r#"{"user": ["alice"]}"#) && !has("user", r#"{"user": "alice""#));
    }

    proptest! {
        #[test]
        fn any_body_is_looked_at(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "(--b|\r\n|[a-z=;\":-]){0,40}") {
            for declared in [FORM, PARTS, "application/json"] {
                let kind = kind(declared).expect("a type");
                for body in [&bytes[..], text.as_bytes()] {
                    let _ = (kind.has_sole_form_field(body, "user"), kind.has_json_scalar(body, "user"));
                }
            }
        }
    }
}
