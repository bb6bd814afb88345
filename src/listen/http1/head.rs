//! The head of a request, from bytes: strictly, and together with what its fields say of the body and the connection.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::StatusCode;
use http::Uri;
use http::Version;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::TE;
use http::header::TRANSFER_ENCODING;
use http::header::UPGRADE;
use memchr::memchr;

use super::buffer_pool;
use crate::http1::Length;
use crate::http1::fields;
use crate::listen::target;

/// What a head may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) bytes: usize,
    pub(super) fields: usize,
}

/// A request without its body.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) target: Uri,
    pub(super) version: Version,
    pub(super) fields: HeaderMap,
    pub(super) framing: Framing,
}

/// What the fields say of what follows the head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Framing {
    pub(super) body: Length,
    /// Another request may follow.
    pub(super) keeps_alive: bool,
    pub(super) wishes: Wishes,
}

/// What else a client may say of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Wishes {
    pub(super) upgrade: bool,
    /// They may stand behind the answer.
    pub(super) trailers: bool,
}

impl Head {
    /// Reads the head with which this begins, and says how long it is. `None`: it is not whole. What is none is to be
    /// answered with the status. Each byte is looked at once: names and values check themselves, and with them that
    /// no line ends in anything but CR LF.
    pub(super) fn parse(read: &Bytes, bounds: Bounds) -> Result<Option<(Self, usize)>, StatusCode> {
        let mut rest = &read[..];
        while let Some(behind) = rest.strip_prefix(LINE_END) {
            rest = behind;
        }
        let Some(first) = line(&mut rest)? else { return check_method(rest).map(|()| None) };
        let (method, target, version) = request_line(first, read)?;
        let mut fields = buffer_pool::fields();
        loop {
            let Some(line) = line(&mut rest)? else { return Ok(None) };
            if line.is_empty() {
                break;
            }
            if fields.len() == bounds.fields {
                return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
            }
            let (name, value) = field(line, read).ok_or(StatusCode::BAD_REQUEST)?;
            fields.try_append(name, value).map_err(|_| StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)?;
        }
        let length = read.len() - rest.len();
        if length > bounds.bytes {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        let framing = Framing::among(&mut fields, version)?;
        Ok(Some((Self { method, target, version, fields, framing }, length)))
    }
}

/// Takes the next line, without its end. `None`: it has none yet.
fn line<'r>(rest: &mut &'r [u8]) -> Result<Option<&'r [u8]>, StatusCode> {
    let Some(end) = memchr(b'\r', rest) else { return Ok(None) };
    match rest.get(end + 1) {
        Some(b'\n') => {
            let line = &rest[..end];
            *rest = &rest[end + LINE_END.len()..];
            Ok(Some(line))
        }
        Some(_) => Err(StatusCode::BAD_REQUEST),
        None => Ok(None),
    }
}

/// Looks at a first line that is not whole: whether it begins like one.
fn check_method(line: &[u8]) -> Result<(), StatusCode> {
    let word = line.split(|byte| matches!(byte, b' ' | b'\r')).next().unwrap_or_default();
    let is_one = matches!(line, b"" | b"\r") || Method::from_bytes(word).is_ok();
    if is_one { Ok(()) } else { Err(StatusCode::BAD_REQUEST) }
}

fn request_line(line: &[u8], read: &Bytes) -> Result<(Method, Uri, Version), StatusCode> {
    let (line, version) = match line.strip_suffix(b" HTTP/1.1") {
        Some(line) => (line, Version::HTTP_11),
        None => (line.strip_suffix(b" HTTP/1.0").ok_or(StatusCode::BAD_REQUEST)?, Version::HTTP_10),
    };
    let space = memchr(b' ', line).ok_or(StatusCode::BAD_REQUEST)?;
    let (method, target) = (&line[..space], &line[space + 1..]);
    // A fragment is passed over by what reads the target, whatever is in it.
    if !target.iter().all(|byte| *byte > b' ' && *byte != DELETE) {
        return Err(StatusCode::BAD_REQUEST);
    }
    let target = target::escape(read.slice_ref(target));
    if target.len() > MAX_TARGET {
        return Err(StatusCode::URI_TOO_LONG);
    }
    let method = Method::from_bytes(method).map_err(|_| StatusCode::BAD_REQUEST)?;
    let target = Uri::from_maybe_shared(target).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok((method, target, version))
}

/// Name and value, which is a part of `read`.
fn field(line: &[u8], read: &Bytes) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = fields::name(&line[..colon]).ok()?;
    let value = HeaderValue::from_maybe_shared(read.slice_ref(trim(&line[colon + 1..]))).ok()?;
    Some((name, value))
}

/// Takes away the blanks around a value.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

const LINE_END: &[u8] = b"\r\n";
const DELETE: u8 = 0x7f;

/// What `Uri` holds.
const MAX_TARGET: usize = u16::MAX as usize - 1;

impl Framing {
    /// Reads it from all fields at once. Afterwards a length stands there once, and not beside chunks.
    fn among(fields: &mut HeaderMap, version: Version) -> Result<Self, StatusCode> {
        let is_persistent = version == Version::HTTP_11;
        let mut said = FramingFields::default();
        for (name, value) in &*fields {
            if *name == CONTENT_LENGTH {
                said.lengths += 1;
                said.length.get_or_insert(value);
                said.has_odd_lengths |= said.length.and_then(number) != number(value) || number(value).is_none();
            } else if *name == TRANSFER_ENCODING {
                said.encoding = Some(value);
            } else if *name == CONNECTION {
                said.closes |= has(value, b"close");
                said.stays |= has(value, b"keep-alive");
            } else if *name == UPGRADE {
                said.wishes.upgrade = is_persistent;
            } else if *name == TE {
                said.wishes.trailers |= has(value, b"trailers");
            }
        }
        let mut framing = Self {
            body: said.body(is_persistent)?,
            keeps_alive: !said.closes && (is_persistent || said.stays),
            wishes: said.wishes,
        };
        if framing.body == Length::Chunked && said.lengths > 0 {
            // Somebody in front may have believed it: what follows is not to be trusted.
            framing.keeps_alive = false;
            fields.remove(CONTENT_LENGTH);
        } else if said.lengths > 1
            && let Some(length) = said.length.cloned()
        {
            fields.insert(CONTENT_LENGTH, length);
        }
        Ok(framing)
    }
}

/// What the fields say, word by word.
#[derive(Debug, Default)]
struct FramingFields<'f> {
    length: Option<&'f HeaderValue>,
    lengths: usize,
    /// They differ, or are none.
    has_odd_lengths: bool,
    /// The last line of it: what comes last says where the body ends.
    encoding: Option<&'f HeaderValue>,
    closes: bool,
    stays: bool,
    wishes: Wishes,
}

impl FramingFields<'_> {
    fn body(&self, knows_chunks: bool) -> Result<Length, StatusCode> {
        if let Some(encoding) = self.encoding {
            let last = encoding.as_bytes().rsplit(|byte| *byte == b',').next().unwrap_or_default();
            let is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
            return if is_chunked && knows_chunks { Ok(Length::Chunked) } else { Err(StatusCode::BAD_REQUEST) };
        }
        let Some(length) = self.length else { return Ok(Length::Known(0)) };
        match number(length) {
            Some(length) if length > MAX_LENGTH => Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
            Some(length) if !self.has_odd_lengths => Ok(Length::Known(length)),
            _ => Err(StatusCode::BAD_REQUEST),
        }
    }
}

/// Digits, and nothing else.
fn number(value: &HeaderValue) -> Option<u64> {
    let digits = value.as_bytes();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// Whether this is among the elements of a list.
pub(super) fn has(list: &HeaderValue, element: &[u8]) -> bool {
    list.as_bytes().split(|byte| *byte == b',').any(|one| one.trim_ascii().eq_ignore_ascii_case(element))
}

/// Beyond it a length is a joke.
const MAX_LENGTH: u64 = u64::MAX - 2;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
