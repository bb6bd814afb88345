//! Multipart bodies as browsers, curl and libraries write them.

use memchr::memmem;

use super::Presence;
use super::content_type::{Charset, StrictContentType, charset};
use super::pairs::{MOST_FIELDS, may_be_charset};
use crate::rules::request::multipart::{MAX_VALUES, names_a_part};
use crate::rules::request::strict::pairs::{NameMatch, compare};
use crate::rules::request::urlencoded::Escapes;
use crate::rules::request::{NotUnderstood, urlencoded};

/// A text that is the parts of a multipart body from its first to its last byte.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct StrictParts {
    /// Two hyphens and the boundary.
    delimiter: Box<[u8]>,
    charset: Charset,
}

#[derive(Debug)]
struct StrictPart<'t> {
    name: &'t str,
    value: &'t [u8],
    /// Whether it has a file name, or a type that is no text.
    is_file: bool,
    charset: Charset,
}

impl StrictParts {
    pub(super) fn read(text: &[u8], boundary: &str, charset: Charset) -> Result<Self, NotUnderstood> {
        let parts = Self { delimiter: format!("--{boundary}").into_bytes().into(), charset };
        let mut count = 0;
        parts.each(text, &mut |part| {
            count += 1;
            if count > MOST_FIELDS {
                return Err(NotUnderstood::TooManyFields);
            }
            // Some applications read the form in the character set that it names here.
            let is_charset = may_be_charset(part.name);
            let is_plain = || str::from_utf8(part.value).ok().and_then(self::charset) == Some(Charset::Utf8);
            if is_charset && !is_plain() { Err(NotUnderstood::Charset) } else { Ok(()) }
        })?;
        Ok(parts)
    }

    /// How often the field stands in the text that was read.
    pub(super) fn presence(&self, text: &[u8], asked: &str) -> Result<Presence, NotUnderstood> {
        let mut presence = Presence::Absent;
        let mut count = 0;
        self.each(text, &mut |part| {
            match compare_unescaped(part.name, asked) {
                NameMatch::Other => return Ok(()),
                NameMatch::Doubtful => return Err(NotUnderstood::Name),
                NameMatch::Exact if presence == Presence::Absent => presence = Presence::Once,
                NameMatch::Exact | NameMatch::OtherCase => presence = Presence::Otherwise,
            }
            count += 1;
            match part.has_one_reading() {
                true if count <= MAX_VALUES => Ok(()),
                true => Err(NotUnderstood::Repeated),
                false => Err(NotUnderstood::Value),
            }
        })?;
        Ok(presence)
    }

    fn each(
        &self,
        text: &[u8],
        then: &mut dyn FnMut(StrictPart<'_>) -> Result<(), NotUnderstood>,
    ) -> Result<(), NotUnderstood> {
        let odd = NotUnderstood::Multipart;
        let finder = memmem::Finder::new(&self.delimiter);
        let mut rest = text.strip_prefix(&*self.delimiter).ok_or(odd)?;
        while let Some(part) = rest.strip_prefix(b"\r\n") {
            // The delimiter stands nowhere but at the end of the part, behind a line break.
            let end = finder.find(part).ok_or(odd)?;
            rest = &part[end + self.delimiter.len()..];
            then(StrictPart::read(part[..end].strip_suffix(b"\r\n").ok_or(odd)?, self.charset)?)?;
        }
        if matches!(rest, b"--" | b"--\r\n" | b"--\r\n\r\n") { Ok(()) } else { Err(odd) }
    }
}

/// Clients escape only quotation marks and line breaks in names.
fn compare_unescaped(name: &str, asked: &str) -> NameMatch {
    if !name.contains('%') {
        return compare(name, asked);
    }
    let decoded = urlencoded::decode(name.as_bytes(), Escapes::default()).unwrap_or_default();
    match str::from_utf8(&decoded).map(|name| compare(&name.replace(['\r', '\n'], " "), asked)) {
        Ok(NameMatch::Other) => NameMatch::Other,
        _ => NameMatch::Doubtful,
    }
}

impl<'t> StrictPart<'t> {
    /// Reads the headers and the value between two delimiters.
    fn read(part: &'t [u8], of_the_body: Charset) -> Result<Self, NotUnderstood> {
        let odd = NotUnderstood::Multipart;
        let end = memmem::find(&part[..part.len().min(MOST_HEADERS)], b"\r\n\r\n").ok_or(odd)?;
        let value = &part[end + 4..];
        // Some applications take a header in a value for the beginning of a part.
        if names_a_part(value) {
            return Err(odd);
        }
        let (mut disposition, mut kind, mut length, mut encoding) = (None, None, None, None);
        for line in str::from_utf8(&part[..end]).map_err(|_| odd)?.split("\r\n") {
            let (name, text) = line.split_once(": ").ok_or(odd)?;
            let header = match &name.to_ascii_lowercase()[..] {
                "content-disposition" => &mut disposition,
                "content-type" => &mut kind,
                "content-length" => &mut length,
                "content-transfer-encoding" => &mut encoding,
                _ => return Err(odd),
            };
            if header.replace(text).is_some() {
                return Err(odd);
            }
        }
        let (name, has_file_name) = disposition.and_then(form_data).ok_or(odd)?;
        let is_length = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse() == Ok(value.len());
        let is_plain = |text: &str| ["7bit", "8bit", "binary"].iter().any(|known| text.eq_ignore_ascii_case(known));
        if !length.is_none_or(is_length) || !encoding.is_none_or(is_plain) {
            return Err(odd);
        }
        // Parts of parts are read by few applications.
        let has_parts = |kind: &str| ["multipart/", "message/"].iter().any(|start| starts_with(kind, start));
        if kind.is_some_and(has_parts) {
            return Err(odd);
        }
        let kind = kind.map(StrictContentType::parse).transpose();
        let kind = kind.map_err(|reason| if reason == NotUnderstood::Charset { reason } else { odd })?;
        let charset = kind.map_or(of_the_body, |kind| kind.charset);
        Ok(Self { name, value, is_file: has_file_name, charset })
    }

    /// Whether the value is a text of one line.
    fn has_one_reading(&self) -> bool {
        !self.is_file
            && (self.charset == Charset::Utf8 || self.value.is_ascii())
            && str::from_utf8(self.value).is_ok_and(|text| !text.chars().any(|char| char.is_control() && char != '\t'))
    }
}

fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
}

/// The name in `form-data; name="x"; filename="y"; filename*=utf-8''y`, and whether there is a file name.
fn form_data(text: &str) -> Option<(&str, bool)> {
    let (name, mut rest) = quoted(text.strip_prefix("form-data; name=\"")?)?;
    let has_only_known_escapes = name.match_indices('%').all(|(at, _)| {
        ["%22", "%0D", "%0A"]
            .iter()
            .any(|escape| name[at..].get(..3).is_some_and(|found| found.eq_ignore_ascii_case(escape)))
    });
    // Some applications decode words as mail encodes them: `=?utf-8?Q?user=6Eame?=`.
    if name.len() > MOST_NAME || !has_only_known_escapes || name.contains("=?") {
        return None;
    }
    let has_file_name = !rest.is_empty();
    if let Some(file) = rest.strip_prefix("; filename=\"") {
        rest = quoted(file)?.1;
    }
    if let Some(file) = rest.strip_prefix("; filename*=") {
        let file = file.strip_prefix('"').and_then(|file| file.strip_suffix('"')).unwrap_or(file);
        let is_extended = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~%'()*@".contains(&byte);
        return file.bytes().all(is_extended).then_some((name, true));
    }
    rest.is_empty().then_some((name, has_file_name))
}

/// The text up to the closing quotation mark, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (inner, rest) = text.split_once('"')?;
    let is_plain = |char: char| !char.is_control() && !matches!(char, '\\' | ';' | '\u{fffd}');
    inner.chars().all(is_plain).then_some((inner, rest))
}

/// In bytes. Lenient readers read no further.
const MOST_HEADERS: usize = 2048;

/// In bytes. The same.
const MOST_NAME: usize = 250;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::request::multipart;

    fn presence(text: &[u8]) -> Result<Presence, NotUnderstood> {
        StrictParts::read(text, "b", Charset::Utf8).and_then(|parts| parts.presence(text, "username"))
    }

    fn part(headers: &str) -> String {
        format!("--b\r\n{headers}\r\n\r\nalice\r\n--b--\r\n")
    }

    const NAME: &str = "Content-Disposition: form-data; name=\"username\"";

    #[test]
    fn parts_as_clients_write_them_are_understood() {
        let text = format!(
            "--b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a b.png\"\r\nContent-Type: image/png\r\n\r\n\
             \u{89}PNG\r\n--\0\r\n--b\r\n{NAME}\r\n\r\nalice\r\n--b--"
        );
        assert_eq!(presence(text.as_bytes()), Ok(Presence::Once));
        assert_eq!(presence(b"--b--\r\n"), Ok(Presence::Absent));
        for headers in [
            NAME.to_owned(),
            format!("Content-Type: text/plain; charset=utf-8\r\n{NAME}"),
            format!("{NAME}\r\nContent-Length: 5"),
            format!("{NAME}\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit"),
            "content-disposition: form-data; name=\"username\"".to_owned(),
        ] {
            assert_eq!(presence(part(&headers).as_bytes()), Ok(Presence::Once), "{headers}");
        }
        for headers in [
            "Content-Disposition: form-data; name=\"a%22b\"",
            "Content-Disposition: form-data; name=\"a\"; filename*=utf-8''%e2%82%ac",
            "Content-Disposition: form-data; name=\"a\"; filename=\"x\"; filename*=\"UTF-8''x\"",
            "Content-Disposition: form-data; name=\"user[email]\"",
        ] {
            assert_eq!(presence(part(headers).as_bytes()), Ok(Presence::Absent), "{headers}");
        }
    }

    #[test]
    fn headers_that_no_client_writes_are_not_understood() {
        for headers in [
            "Content-Disposition: form-data; name=username".to_owned(),
            "Content-Disposition: form-data; name==\"username\"".to_owned(),
            "Content-Disposition: form-data; name =\"username\"".to_owned(),
            "Content-Disposition: form-data; name= \"username\"".to_owned(),
            "Content-Disposition: form-data;\tname=\"username\"".to_owned(),
            "Content-Disposition: form-data;\r\n name=\"username\"".to_owned(),
            "Content-Disposition: form-data; name=\"user\\name\"".to_owned(),
            "Content-Disposition: form-data; name=\"user%6eame\"".to_owned(),
            "Content-Disposition: form-data; name=\"=?utf-8?Q?=75sername?=\"".to_owned(),
            "Content-Disposition: form-data; NAME=\"username\"".to_owned(),
            "Content-Disposition: form-data; name=\"x\"; name=\"username\"".to_owned(),
            "Content-Disposition: form-data; filename=\"x\"; name=\"username\"".to_owned(),
            "Content-Disposition: form-data; name=\"x\"; filename=\"x;\"".to_owned(),
            "Content-Disposition : form-data; name=\"username\"".to_owned(),
            format!("{NAME}\r\n{NAME}"),
            format!("{NAME}\r\nContent-Transfer-Encoding: base64"),
            format!("{NAME}\r\nContent-Length: 4"),
            format!("{NAME}\r\nContent-Type: multipart/mixed; boundary=c"),
            format!("{NAME}\r\nX-Other: y"),
            format!("X: {}\r\n{NAME}", "y".repeat(3000)),
        ] {
            assert_eq!(presence(part(&headers).as_bytes()), Err(NotUnderstood::Multipart), "{headers}");
        }
        let ibm = format!("{NAME}\r\nContent-Type: text/plain; charset=ibm037");
        assert_eq!(presence(part(&ibm).as_bytes()), Err(NotUnderstood::Charset));
        let file = format!("{NAME}; filename=\"x\"");
        assert_eq!(presence(part(&file).as_bytes()), Err(NotUnderstood::Value));
        for name in ["][username", "username[]", "user name", "user.name"] {
            let headers = format!("Content-Disposition: form-data; name=\"{name}\"");
            assert_eq!(presence(part(&headers).as_bytes()), Err(NotUnderstood::Name), "{name}");
        }
    }

    #[test]
    fn bodies_that_no_client_writes_are_not_understood() {
        let text = part(NAME);
        for text in [
            format!("preamble\r\n{text}"),
            text.replace("\r\n", "\n"),
            text.replace("--b--", "--b"),
            text.replace("alice\r\n", "alice"),
            text.replace("alice", "al--bice"),
            text.replace("alice", "x\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nalice"),
            format!("{text}epilogue"),
            format!("{text}{text}"),
            String::new(),
        ] {
            assert_eq!(presence(text.as_bytes()), Err(NotUnderstood::Multipart), "{text:?}");
        }
        for value in ["alice\r\n--x", "alice\0", "ali\ncE"] {
            assert_eq!(presence(text.replace("alice", value).as_bytes()), Err(NotUnderstood::Value), "{value:?}");
        }
        let charset = text.replace("\"username\"", "\"_charset_\"").replace("alice", "utf-16");
        assert_eq!(presence(charset.as_bytes()), Err(NotUnderstood::Charset));
        let many = format!("--b\r\n{NAME}\r\n\r\nx\r\n").repeat(MOST_FIELDS + 1) + "--b--\r\n";
        assert_eq!(presence(many.as_bytes()), Err(NotUnderstood::TooManyFields));
    }

    proptest! {
        #[test]
        fn what_a_browser_writes_is_understood_and_read(
            fields in prop::collection::vec(("[a-z]{1,6}", "[ -~\u{e9}\r\n]{0,12}"), 0..6),
            value in "[ -~\u{e9}]{0,12}",
            place in 0_usize..6,
        ) {
            let mut parts: Vec<_> = fields
                .iter()
                .filter(|(_, value)| !value.contains("--b"))
                .map(|(name, value)| format!("--b\r\nContent-Disposition: form-data; name=\"x{name}\"\r\n\r\n{value}\r\n"))
                .collect();
            prop_assume!(!value.contains("--b"));
            parts.insert(place.min(parts.len()), format!("--b\r\n{NAME}\r\n\r\n{value}\r\n"));
            let text = parts.concat() + "--b--\r\n";
            prop_assert_eq!(presence(text.as_bytes()), Ok(Presence::Once));
            let boundaries = [b"b".to_vec()];
            prop_assert_eq!(multipart::values(text.as_bytes(), &boundaries, "username"), [value]);
        }

        #[test]
        fn a_mutated_body_is_not_understood_or_the_value_is_found(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            change in 0..3,
        ) {
            let mut text = part(NAME).into_bytes();
            let at = at.index(text.len());
            match change {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => _ = text.remove(at),
            }
            let boundaries = [b"b".to_vec()];
            let values = multipart::values(&text, &boundaries, "username");
            let found = presence(&text);
            prop_assert!(found.is_err() || (found == Ok(Presence::Absent)) == values.is_empty(), "{found:?} {values:?}");
        }
    }
}
